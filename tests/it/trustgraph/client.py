"""Calls a tool service with the client of TrustGraph 2.11.1 over RabbitMQ, and prints one JSON line for each call.

    client.py HOST PORT USER VHOST TOPIC CALL...        the password is in the variable RABBITMQ_PASSWORD

A CALL is a JSON list: config, arguments, and `true` to collect all parts of the reply.
"""

import asyncio
import json
import os
import sys
from types import SimpleNamespace

from trustgraph.base.pubsub import get_async_pubsub
from trustgraph.base.tool_service_client import ToolServiceClientSpec


async def main(host, port, user, vhost, topic, *calls):
    backend = get_async_pubsub(
        pubsub_backend="rabbitmq", rabbitmq_host=host, rabbitmq_port=int(port), rabbitmq_username=user,
        rabbitmq_password=os.environ["RABBITMQ_PASSWORD"], rabbitmq_vhost=vhost)
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
