"""Runs an agent over AG-UI, with the types of the protocol's own package: each event is parsed as the schema has it, approves
the interrupt of the first run, and prints what came. The argument is the URL."""

import json
import sys
import urllib.request

from ag_ui.core import Event, ResumeEntry, RunAgentInput, UserMessage
from pydantic import TypeAdapter

reader = TypeAdapter(Event)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def run(**members):
    body = RunAgentInput(thread_id="till", protocol_version="1.0", **members).model_dump_json(by_alias=True)
    headers = {"content-type": "application/json", "accept": "text/event-stream", "authorization": "Bearer sesame"}
    request = urllib.request.Request(sys.argv[1], data=body.encode(), headers=headers)
    with opener.open(request) as response:
        for line in response:
            line = line.decode().rstrip()
            if not line.startswith("data: "):
                continue
            event = reader.validate_json(line[len("data: "):])
            # Unknown members are kept by the package: there must be none.
            assert not event.model_extra, event
            # What the package writes is what came.
            assert event.model_dump(mode="json", by_alias=True) == json.loads(line[len("data: "):]), line
            outcome = getattr(event, "outcome", None)
            shown = getattr(event, "delta", None) or getattr(event, "tool_call_name", None)
            print(f"{type(event).__name__} {shown or (outcome.type if outcome else str())}".rstrip())
            yield event


def last(events):
    *_, event = events
    return event


asked = last(run(run_id="r1", messages=[UserMessage(id="m1", content="Pay 7.")]))
interrupt = asked.outcome.interrupts[0]
answer = ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload={"approved": True})
last(run(run_id="r2", messages=[], resume=[answer]))
