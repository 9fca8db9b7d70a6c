"""Calls a tool service with the client of TrustGraph 2.11.1 over a broker, and prints one JSON line for each call.

    client.py BACKEND TOPIC CALL...        the password of RabbitMQ is in the variable RABBITMQ_PASSWORD

BACKEND is a JSON object: the parameters of TrustGraph's backend. A CALL is a JSON list: config, arguments, and `true` to collect all parts of the reply.
"""

import asyncio
import json
import os
import sys
from types import SimpleNamespace

from trustgraph.base.pubsub import get_async_pubsub
from trustgraph.base.tool_service_client import ToolServiceClientSpec


async def main(backend, topic, *calls):
    backend = get_async_pubsub(rabbitmq_password=os.environ.get("RABBITMQ_PASSWORD"), **json.loads(backend))
    processor = SimpleNamespace(id="test-client", async_backend=backend)
    topics = {"topics": {"req": f"request:tg:{topic}", "resp": f"response:tg:{topic}"}}
    client = await ToolServiceClientSpec("req", "resp").register(SimpleNamespace(consumer={}), processor, topics)
    for call in calls:
        config, arguments, *parts = json.loads(call)
        try:
            if parts:
                seen = []

                async def take(part):
                    seen.append(part)

                whole = await client.call_streaming(config, arguments, take, timeout=20)
                print(json.dumps({"ok": whole, "parts": seen}), flush=True)
            else:
                print(json.dumps({"ok": await client.call(config, arguments, timeout=20)}), flush=True)
        except Exception as error:
            print(json.dumps({"error": str(error)}), flush=True)
    await client.close()
    await backend.close()


asyncio.run(main(*sys.argv[1:]))
# The client of Pulsar may abort while the interpreter ends.
os._exit(0)
