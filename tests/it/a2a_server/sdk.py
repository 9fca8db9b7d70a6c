"""The client of another maker, in all that our card offers: prints what it got, one line for each call."""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, Role, SendMessageRequest, TaskState,
)
from a2a.utils.errors import A2AError


def message(id, text, task=""):
    parts = [Part(text=text)]
    return SendMessageRequest(message=Message(message_id=id, role=Role.ROLE_USER, parts=parts, task_id=task))


def shown(task):
    said = "".join(part.text for artifact in task.artifacts for part in artifact.parts)
    said = said or "".join(part.text for part in task.status.message.parts)
    return f"{TaskState.Name(task.status.state)} {said}"


async def sent(client, request):
    """Returns the last task, and the number of items of each kind before it."""
    task, kinds, text = None, [], ""
    async for item in client.send_message(request):
        kind = item.WhichOneof("payload")
        kinds.append(kind)
        if kind == "task":
            task = item.task
        elif kind == "artifact_update":
            update = item.artifact_update
            said = "".join(part.text for part in update.artifact.parts)
            text = text + said if update.append else said
        elif kind == "status_update":
            task.status.CopyFrom(item.status_update.status)
    return task, kinds, text


async def speak(base, binding, version):
    headers = {"Authorization": "Bearer sesame"}
    async with httpx.AsyncClient(headers=headers) as http:
        card = await A2ACardResolver(http, base).get_agent_card()
        wanted = [one for one in card.supported_interfaces if (one.protocol_binding, one.protocol_version) == (binding, version)]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(wanted)
        name = f"{binding} {version}"

        config = ClientConfig(streaming=False, httpx_client=http, supported_protocol_bindings=[binding])
        client = ClientFactory(config).create(card)
        task, kinds, _ = await sent(client, message(f"{name} 1", "How many?"))
        print(name, "asked:", shown(task), kinds)
        task, kinds, _ = await sent(client, message(f"{name} 2", "This year.", task.id))
        print(name, "answered:", shown(task), kinds)
        found = await client.get_task(GetTaskRequest(id=task.id, history_length=1))
        print(name, "found:", shown(found), [part.text for part in found.history[0].parts])
        try:
            listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id, include_artifacts=True))
            print(name, "listed:", [shown(one) for one in listed.tasks], listed.total_size)
        except NotImplementedError as error:
            print(name, "listed:", error)
        try:
            await client.cancel_task(CancelTaskRequest(id=task.id))
        except (A2AError, A2AClientError) as error:
            print(name, "cancelled:", type(error).__name__)

        config = ClientConfig(streaming=True, httpx_client=http, supported_protocol_bindings=[binding])
        client = ClientFactory(config).create(card)
        task, kinds, text = await sent(client, message(f"{name} 3", "And now?"))
        print(name, "streamed:", TaskState.Name(task.status.state), text, kinds[0], kinds[-1])


async def main():
    for binding, version in [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")]:
        await speak(sys.argv[1], binding, version)


asyncio.run(main())
