"""An embedding model behind any endpoint that speaks OpenAI's `/embeddings`."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock
from typing import Final

import anyio
import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from pydantic import SecretStr

from loom.models import embeddings_wire as wire
from loom.models.breaker import Blame
from loom.models.exchange import Exchange, Unanswered
from loom.models.interface import EmbedderFailed
from loom.models.lanes import CLOSED
from loom.models.openai_wire import OK, Reply
from loom.storage.indexes import Vector

PATH: Final = "/embeddings"
QUERIES_AT_ONCE_MAX: Final = 16
BULKS_AT_ONCE_MAX: Final = 4
"""Calls of one process at once; questions have places of their own."""

REQUESTS_AT_ONCE_MAX: Final = 4
"""Requests at once that one bulk is cut into."""

CUT_TO_MIN: Final = 256
"""A text that the endpoint finds too long is sent in half, and again, down to so many characters."""

REQUESTS_PER_BATCH_MAX: Final = 128
"""Requests that one batch may take, each asked again as `exchange` says. An endpoint that takes one text at once needs
63 for 32 texts, and as many again where each text has to be cut once."""

CROWDED: Final = "too many calls of the endpoint are under way"
PROBE: Final = "Does the model answer?"
TOO_MANY_REQUESTS: Final = f"the endpoint takes so little at once that {REQUESTS_PER_BATCH_MAX} requests are too few"

RESPONSE_BYTES_MAX: Final = 32 * 1024 * 1024
WAITED_SHARE_MAX: Final = 0.5
"""Who waited for a place for more than this share of its time left the endpoint too little of it."""

IDLE_S: Final = 60.0
"""How long a connection is kept for the next call."""


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    """Where an embedding model answers.

    Attributes:
        url: the address before `/embeddings`, without a login or a query in it.
        model: the model's name there.
        api_key: sent as a bearer token; empty for none. Neither shown nor logged.
        timeout_s: the longest one request may take, repeats included.
        dimension: numbers of a vector to ask for; 0 for as many as the model gives.
    """

    url: str
    model: str
    api_key: SecretStr
    timeout_s: float
    dimension: int = 0


class EndpointModel:
    """A `foreign.Model` behind an endpoint. Safe for threads.

    Texts go in batches. An endpoint that finds a batch too large gets its halves; a text that is too long alone is
    cut. Where an error does not say that it is that, one short text decides whether the endpoint refuses every one.
    Connections are kept between calls, by a thread that begins with the first call.
    """

    def __init__(self, endpoint: EmbeddingEndpoint) -> None:
        self._endpoint = endpoint
        self._exchange = Exchange(endpoint.url, endpoint.api_key, RESPONSE_BYTES_MAX)
        self._queries = BoundedSemaphore(QUERIES_AT_ONCE_MAX)
        self._bulks = BoundedSemaphore(BULKS_AT_ONCE_MAX)
        self._mutex = Lock()
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._client: httpx.AsyncClient | None = None
        self._closed = False
        self._names_dimension = endpoint.dimension > 0

    def warm(self) -> None:
        """Nothing to load here."""

    def vectors(self, texts: Sequence[str], timeout_s: float, *, urgent: bool) -> list[Vector]:
        """One vector of unit length for each text, in order; see `foreign.Model`.

        Raises:
            EmbedderFailed: not all came in time.
        """
        if not texts:
            return []
        began_s = time.monotonic()
        turns = self._queries if urgent else self._bulks
        if not turns.acquire(timeout=max(0.0, timeout_s)):
            raise EmbedderFailed(CROWDED, blame=Blame.CALLERS)
        waited_s = time.monotonic() - began_s
        try:
            return self._made(texts, began_s + timeout_s)
        except EmbedderFailed as failure:
            if time.monotonic() - began_s >= timeout_s and waited_s > timeout_s * WAITED_SHARE_MAX:
                raise EmbedderFailed(f"{CROWDED}: {failure}", blame=Blame.CALLERS) from None
            raise
        finally:
            turns.release()

    def probe(self, texts: Sequence[str], timeout_s: float) -> list[Vector]:
        """As `vectors`, at once; see `foreign.Model`."""
        return self._made(texts, time.monotonic() + timeout_s)

    def close(self) -> None:
        """Close the connections and stop the thread."""
        with self._mutex:
            self._closed = True
            portal, self._portal = self._portal, None
            client, self._client = self._client, None
        if portal is not None and client is not None:
            portal.call(client.aclose)
        self._stack.close()

    def _made(self, texts: Sequence[str], until_s: float) -> list[Vector]:
        try:
            return self._running().call(self._all, list(wire.batches(texts)), until_s)
        except RuntimeError:  # what a portal that was stopped raises, and a client that was closed
            raise closed() from None

    def _running(self) -> BlockingPortal:
        with self._mutex:
            if self._closed:
                raise closed()
            if self._portal is None:
                self._portal = self._stack.enter_context(start_blocking_portal())
                self._client = self._exchange.client(httpx.Limits(keepalive_expiry=IDLE_S))
            return self._portal

    async def _all(self, batches: Sequence[Sequence[str]], until_s: float) -> list[Vector]:
        """The vectors of every batch, some of them at once; the first that fails ends the others."""
        client = self._client
        if client is None:
            raise closed()
        made: list[list[Vector]] = [[] for _ in batches]
        failures: list[EmbedderFailed] = []
        room = anyio.Semaphore(REQUESTS_AT_ONCE_MAX)

        async def one(place: int, group: anyio.abc.TaskGroup) -> None:
            async with room:
                ends_s = min(until_s, time.monotonic() + self._endpoint.timeout_s)
                try:
                    with anyio.fail_after(max(0.0, ends_s - time.monotonic())):
                        made[place] = await self._batch(_Sending(client, ends_s), batches[place])
                except TimeoutError:
                    failures.append(EmbedderFailed("the endpoint gave no vectors in time"))
                except EmbedderFailed as failure:
                    failures.append(failure)
                except RuntimeError:  # what a client that was closed meanwhile raises
                    failures.append(closed())
                if failures:
                    group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for place in range(len(batches)):
                group.start_soon(one, place, group)
        if failures:
            raise failures[0]
        return [vector for batch in made for vector in batch]

    async def _batch(self, sending: "_Sending", texts: Sequence[str]) -> list[Vector]:
        named = self._names_dimension
        reply = await self._asked(sending, texts, named=named)
        if reply.status in OK:
            return wire.vectors(reply, len(texts), self._endpoint.dimension)
        if reply.status in wire.REFUSALS and not wire.is_too_long(reply):
            await self._need_answer(sending)
            if named and not self._names_dimension:
                return await self._batch(sending, texts)
        if not wire.can_be_too_much(reply):
            raise wire.refused(reply)
        if len(texts) > 1:
            half = len(texts) // 2
            first = await self._batch(sending, texts[:half])
            return first + await self._batch(sending, texts[half:])
        if len(texts[0]) >= 2 * CUT_TO_MIN:
            return await self._batch(sending, [texts[0][: len(texts[0]) // 2]])
        raise wire.refused(reply)

    async def _need_answer(self, sending: "_Sending") -> None:
        """See that the endpoint takes one short text, asked without a dimension where it does not take that.

        What was refused before was then refused for what it is. Once for each batch.

        Raises:
            EmbedderFailed: it refuses every text.
        """
        if sending.probed:
            return
        sending.probed = True
        named = self._names_dimension
        reply = await self._asked(sending, [PROBE], named=named)
        if named and reply.status in wire.REFUSALS:
            reply = await self._asked(sending, [PROBE], named=False)
            if reply.status in OK:
                self._names_dimension = False
        if reply.status not in OK:
            raise wire.failure(reply)

    async def _asked(self, sending: "_Sending", texts: Sequence[str], *, named: bool) -> Reply:
        if not sending.requests_left:
            raise EmbedderFailed(TOO_MANY_REQUESTS, blame=Blame.INPUT)
        sending.requests_left -= 1
        body = wire.request_body(self._endpoint.model, texts, self._endpoint.dimension if named else 0)
        try:
            return await self._exchange.sent(
                sending.client, PATH, body, sending.until_s, lambda reply: not wire.is_hopeless(reply)
            )
        except Unanswered as failed:
            raise EmbedderFailed(str(failed)) from None


@dataclass
class _Sending:
    """A batch on its way.

    Attributes:
        client: over which it goes.
        until_s: when it has to be there, by the steady clock.
        requests_left: how many more it may take.
        probed: whether it is known that the endpoint takes a short text.
    """

    client: httpx.AsyncClient
    until_s: float
    requests_left: int = REQUESTS_PER_BATCH_MAX
    probed: bool = False


def closed() -> EmbedderFailed:
    """What a call of a closed model comes to."""
    return EmbedderFailed(CLOSED, blame=Blame.CALLERS)
