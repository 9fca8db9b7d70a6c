"""An agent of another maker, in each binding and version: its card names the binding of the first argument alone."""

import asyncio
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Part, Role
from starlette.applications import Starlette


class Agent(AgentExecutor):
    async def execute(self, context, queue):
        said = context.get_user_input()
        if said == "message":
            await queue.enqueue_event(Message(message_id="m", role=Role.ROLE_AGENT, parts=[Part(text="Only words.")]))
            return
        if context.current_task is None:
            await queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        words = lambda text: updater.new_agent_message([Part(text=text)])
        if said == "question":
            await updater.requires_input(words("Which year?"))
        elif said == "long":
            await updater.start_work(words("Half of it."))
            await asyncio.sleep(600)
        else:
            await updater.start_work(words("Working."))
            parts = [Part(text=f"Heard: {said}."), Part(url="https://files.example.com/a.pdf", filename="a.pdf")]
            await updater.add_artifact(parts, name="answer")
            await updater.complete()

    async def cancel(self, context, queue):
        print("cancelled", flush=True)
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


async def main(binding, version, streams):
    url = "http://127.0.0.1"
    config = uvicorn.Config(app=None, host="127.0.0.1", port=0, log_level="error")
    sock = config.bind_socket()
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    card = AgentCard(
        name="Other Maker", description="Answers.", version="1",
        capabilities=AgentCapabilities(streaming=streams),
        default_input_modes=["text/plain"], default_output_modes=["text/plain"],
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version=version)],
        skills=[AgentSkill(id="find", name="Find", description="Finds.", tags=["t"])],
    )
    handler = DefaultRequestHandler(Agent(), InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)]
    config.app = Starlette(routes=[*routes, *create_rest_routes(handler)])
    # Bound alone, it refuses whoever is told of it before the server has started.
    sock.listen()
    print(url, flush=True)
    await uvicorn.Server(config).serve(sockets=[sock])


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] == "streams"))
