"""Asks an agent through the Python SDK of OpenAI. The argument is the base URL."""

import sys

import openai
import pydantic

client = openai.OpenAI(base_url=sys.argv[1], api_key="sesame", max_retries=0)


def question(text):
    return [{"role": "user", "content": text}]


class Weather(pydantic.BaseModel):
    celsius: int


print("models:", [model.id for model in client.models.list()])

asked = client.chat.completions.create(model="agent", messages=question("Coffee is out."))
print("asked:", asked.choices[0].message.content, asked.choices[0].finish_reason, asked.usage.total_tokens)

text, finish, usage = "", None, None
for chunk in client.chat.completions.create(
    model="agent", messages=question("Is it open?"), stream=True, stream_options={"include_usage": True}
):
    if chunk.usage:
        usage = chunk.usage.total_tokens
    for choice in chunk.choices:
        text += choice.delta.content or ""
        finish = choice.finish_reason or finish
print("streamed:", text, finish, usage)

parsed = client.chat.completions.parse(model="agent", messages=question("How warm?"), response_format=Weather)
print("parsed:", parsed.choices[0].message.parsed)

tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
other = openai.OpenAI(base_url=sys.argv[1], api_key="wrong", max_retries=0)
for name, client_, arguments in [
    ("tools", client, {"model": "agent", "tools": [tool], "tool_choice": "required"}),
    ("model", client, {"model": "gpt"}),
    ("token", other, {"model": "agent"}),
]:
    try:
        client_.chat.completions.create(messages=question("hi"), **arguments)
    except openai.APIStatusError as error:
        print(f"{name}:", type(error).__name__, error.status_code, error.code)

first = client.responses.create(model="agent", input="I am Ann.")
print("response:", first.status, first.output_text, first.usage.total_tokens)
second = client.responses.create(model="agent", input="Who am I?", previous_response_id=first.id)
print("continued:", second.status, second.output_text)
kept = client.responses.retrieve(second.id)
print("retrieved:", kept.status, kept.output_text)

with client.responses.stream(model="agent", input="Stream.") as stream:
    said = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    final = stream.get_final_response()
print("events:", said, final.status, final.output_text)
