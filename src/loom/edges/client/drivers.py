"""The two drivers: the same call, once blocking and once not."""

import asyncio
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx

from loom.edges.client.core import Broken, Conversation, Identity, Outcome, Reply, Send, Step, conversation
from loom.edges.client.planes import REPEATS, AsyncPlanes, Planes
from loom.ops.spec import Answer

DEFAULT_URL = "http://127.0.0.1:7777"
TIMEOUT_S = 60.0
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

Out = TypeVar("Out", bound=Answer)


class Loom(Planes):
    """A client that waits for each answer. Safe to share between threads.

    Every operation is a method, grouped by plane: `loom.memory.set(...)`,
    `loom.search.query(...)`. Close it, or use it in a `with`.

    Args:
        url: where the server listens.
        token: the bearer token; None on a single-user server.
        timeout_s: seconds to wait for one answer.
        transport: stands in for the network, in tests.
        identity: `namespace`, `agent`, `user_id`, `session_id`, `org` and `run_id` for every call.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
        **identity: Unpack[Identity],
    ) -> None:
        super().__init__(self._typed)
        self._token = token
        self._identity = given(identity)
        self._http = httpx.Client(base_url=url, timeout=timeout_s, transport=transport)

    def call(self, op: str, args: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Call any operation by name; the answer as plain data.

        Raises:
            LoomError: the server's refusal, or Unavailable when there is no answer.
        """
        talk = conversation(op, {**self._identity, **(args or {})}, self._token, REPEATS)
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration as done:
                return done.value
            outcome = self._do(step)

    def _typed(self, op: str, gives: type[Out], fields: Mapping[str, object]) -> Out:
        return gives.model_validate(self.call(op, fields))

    def _do(self, step: Step) -> Outcome:
        if not isinstance(step, Send):
            time.sleep(step.seconds_s)
            return None
        try:
            return reply(self._http.post(step.path, headers=step.headers, content=step.body))
        except httpx.TransportError as error:
            return broken(error)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncLoom(AsyncPlanes):
    """A client for asyncio; the same methods as Loom, to be awaited.

    Args:
        url: where the server listens.
        token: the bearer token; None on a single-user server.
        timeout_s: seconds to wait for one answer.
        transport: stands in for the network, in tests.
        identity: `namespace`, `agent`, `user_id`, `session_id`, `org` and `run_id` for every call.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        transport: httpx.AsyncBaseTransport | None = None,
        **identity: Unpack[Identity],
    ) -> None:
        super().__init__(self._typed)
        self._token = token
        self._identity = given(identity)
        self._http = httpx.AsyncClient(base_url=url, timeout=timeout_s, transport=transport)

    async def call(self, op: str, args: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Call any operation by name; the answer as plain data.

        Raises:
            LoomError: the server's refusal, or Unavailable when there is no answer.
        """
        talk: Conversation = conversation(op, {**self._identity, **(args or {})}, self._token, REPEATS)
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration as done:
                return done.value
            outcome = await self._do(step)

    async def _typed(self, op: str, gives: type[Out], fields: Mapping[str, object]) -> Out:
        return gives.model_validate(await self.call(op, fields))

    async def _do(self, step: Step) -> Outcome:
        if not isinstance(step, Send):
            await asyncio.sleep(step.seconds_s)
            return None
        try:
            return reply(await self._http.post(step.path, headers=step.headers, content=step.body))
        except httpx.TransportError as error:
            return broken(error)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def given(identity: Identity) -> Mapping[str, object]:
    """The identity fields that were given."""
    return {name: value for name, value in identity.items() if value is not None}


def reply(response: httpx.Response) -> Reply:
    """An httpx response as the core reads it."""
    return Reply(response.status_code, response.headers, response.content)


def broken(error: httpx.TransportError) -> Broken:
    """A failed exchange as the core reads it; the reason holds no address and no secret."""
    if isinstance(error, NOT_SENT):
        return Broken("cannot connect", sent=False)
    return Broken(type(error).__name__, sent=True, late=isinstance(error, httpx.TimeoutException))
