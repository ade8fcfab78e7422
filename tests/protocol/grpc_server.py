"""A gRPC server that answers or refuses Qdrant's calls as a test says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import grpc  # type: ignore[import-untyped]
from qdrant_client import grpc as messages

from tests.protocol.certificates import Certificate

VERSION = "1.19.0"

Answer = Callable[[Any], Awaitable[messages.CountResponse]]
"""(the call's context) -> what is answered; refuses through the context."""


class GrpcServer:
    """Counts points: the next of ``answers`` decides how; without any, there are three."""

    def __init__(self, certificate: Certificate | None = None) -> None:
        self._certificate = certificate
        self.answers: list[Answer] = []
        self.keys: list[str | None] = []
        """The key that each call brought."""

    async def __aenter__(self) -> Self:
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([_Calls(self._count)])
        if self._certificate is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            pair = (self._certificate.key.read_bytes(), self._certificate.file.read_bytes())
            self.port = self._server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop(None)

    async def _count(self, _: messages.CountPoints, context: Any) -> messages.CountResponse:
        self.keys.append(dict(context.invocation_metadata()).get("api-key"))
        if self.answers:
            return await self.answers.pop(0)(context)
        return messages.CountResponse(result=messages.CountResult(count=3))


class _Calls(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, count: Any) -> None:
        self._count = count

    def service(self, details: Any) -> Any:
        match details.method:
            case "/qdrant.Qdrant/HealthCheck":
                return _handler(_version, messages.HealthCheckRequest, messages.HealthCheckReply)
            case "/qdrant.Collections/List":
                return _handler(_collections, messages.ListCollectionsRequest, messages.ListCollectionsResponse)
            case "/qdrant.Points/Count":
                return _handler(self._count, messages.CountPoints, messages.CountResponse)
            case _:
                return None


async def _version(_: messages.HealthCheckRequest, __: Any) -> messages.HealthCheckReply:
    return messages.HealthCheckReply(title="qdrant", version=VERSION)


async def _collections(_: messages.ListCollectionsRequest, __: Any) -> messages.ListCollectionsResponse:
    return messages.ListCollectionsResponse()


def _handler(answer: Any, request: Any, reply: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        answer, request_deserializer=request.FromString, response_serializer=reply.SerializeToString
    )


def refusing(code: grpc.StatusCode, words: str = "injected", **trailing: str) -> Answer:
    async def answer(context: Any) -> messages.CountResponse:
        context.set_trailing_metadata(tuple((name.replace("_", "-"), value) for name, value in trailing.items()))
        await context.abort(code, words)
        raise AssertionError("unreachable")

    return answer
