"""A tool service of TrustGraph 2.11.1 on RabbitMQ: its own backend, codec and service class.

Only `start` differs from the stock class, whose queue ids the RabbitMQ backend refuses. Arguments of a call:
`object` returns an object, `fail` raises, `busy` raises TooManyRequests that often; otherwise a joke about `topic`.
With --parts each call is answered in three parts.
"""

from trustgraph.base import DynamicToolService
from trustgraph.base.async_processor import AsyncProcessor
from trustgraph.exceptions import TooManyRequests
from trustgraph.schema import ToolServiceRequest, ToolServiceResponse


class Jokes(DynamicToolService):
    def __init__(self, **params):
        self.parts, self.refused = bool(params.get("parts")), 0
        super().__init__(**params)

    async def start(self):
        await AsyncProcessor.start(self)
        self._producer_handle = await self.sender_pool.add_producer(
            topic=f"response:tg:{self._topic}", schema=ToolServiceResponse)
        self._consumer_reg = await self.receiver_pool.add_consumer(
            topic=f"request:tg:{self._topic}", subscription=f"{self.id}-request",
            schema=ToolServiceRequest, handler=self.answer)
        print("READY", flush=True)

    async def answer(self, message):
        if not self.parts:
            return await self.on_request(message, None, None)
        words = ["Why did ", "the llama ", "cross?"]
        for at, word in enumerate(words):
            await self._producer_handle.send(
                ToolServiceResponse(response=word, end_of_stream=at == len(words) - 1),
                properties={"id": message.properties()["id"]})

    async def invoke(self, config, arguments):
        if self.refused < arguments.get("busy", 0):
            self.refused += 1
            raise TooManyRequests("slow down")
        if "fail" in arguments:
            raise RuntimeError(arguments["fail"])
        if arguments.get("object"):
            return {"config": config, "arguments": arguments}
        return f"A {config.get('style', 'pun')} about {arguments.get('topic')} \u00e9"

    @staticmethod
    def add_args(parser):
        DynamicToolService.add_args(parser)
        parser.add_argument("--parts", action="store_true")


Jokes.launch("joke-service", __doc__)
