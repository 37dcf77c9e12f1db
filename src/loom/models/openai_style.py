"""A language model behind any endpoint that speaks OpenAI's `/chat/completions`."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import Final, TypeVar

import anyio
import httpx
from pydantic import SecretStr

from loom.canonical import Json, encoded
from loom.models import openai_wire as wire
from loom.models.exchange import Exchange, Unanswered
from loom.models.openai_wire import Ask, Manner, NotJson, Reply
from loom.models.strict_schema import strict
from loom.models.writer import WriterFailed

PATH: Final = "/chat/completions"
PROBE: Final = "Does the model answer?"
CROWDED: Final = "too many calls of the model are under way"
LENGTH_PER_TOKEN: Final = 2
"""Characters that a token stands for at least, nearly always; English has about four, Chinese one or two."""

CALLS_AT_ONCE_MAX: Final = 4
"""Calls of one process at once; a model answers in seconds, and callers hold a thread meanwhile."""

TURN_TIMEOUT_S: Final = 5.0
"""How long a call waits for its turn."""

WAITED_SHARE_MAX: Final = 0.5
"""Who waited for a turn for more than this share of its time left the model too little of it."""

RESPONSE_BYTES_MAX: Final = 4 * 1024 * 1024

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers, and what it takes.

    Attributes:
        url: the address before `/chat/completions`, without a login or a query in it.
        model: the model's name there.
        api_key: sent as a bearer token; empty for none. Neither shown nor logged.
        timeout_s: the longest one call may take, whatever a caller allows.
        context_tokens: what the model takes and gives together.
        output_tokens_max: the longest answer.
    """

    url: str
    model: str
    api_key: SecretStr
    timeout_s: float
    context_tokens: int
    output_tokens_max: int


class OpenAiStyle:
    """The model of one endpoint. Safe to call from several threads; holds no connection between calls.

    How the endpoint wants to be asked is found out by asking: it is asked for a strict JSON Schema first, then for
    a JSON object, then in words, and what worked is remembered.

    What is sent goes as `exchange` says.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._exchange = Exchange(endpoint.url, endpoint.api_key, RESPONSE_BYTES_MAX)
        self._turns = BoundedSemaphore(CALLS_AT_ONCE_MAX)
        self._manner: Manner = Manner()

    @property
    def endpoint(self) -> str:
        """Where text goes."""
        return self._endpoint.url

    @property
    def model(self) -> str:
        """The model's name."""
        return self._endpoint.model

    @property
    def input_length_max(self) -> int:
        """Characters of instructions, text and shape together that one call takes."""
        return (self._endpoint.context_tokens - self._endpoint.output_tokens_max) * LENGTH_PER_TOKEN

    def write(self, instructions: str, text: str, shape: Mapping[str, Json], timeout_s: float) -> Json:
        """JSON that the model made of the text; see `Writer`.

        Raises:
            WriterFailed: no answer in time, a refusal, an error of the endpoint, or an answer that is not JSON.
        """
        made = strict(shape)
        if len(instructions) + len(text) + len(encoded(dict(made.schema))) > self.input_length_max:
            too_long = "the text is too long for the model's context"
            raise WriterFailed(too_long, retryable=False, too_long=True, tells_nothing=True)
        began_s = time.monotonic()
        own_s = min(timeout_s, self._endpoint.timeout_s)
        if not self._turns.acquire(timeout=max(0.0, min(TURN_TIMEOUT_S, own_s))):
            raise WriterFailed(CROWDED, retryable=True, tells_nothing=True)
        waited_s = time.monotonic() - began_s
        try:
            ask = Ask(self.model, instructions, text, made, self._endpoint.output_tokens_max)
            return _run(self._asked, ask, began_s + own_s)
        except WriterFailed as failure:
            if time.monotonic() - began_s >= own_s and waited_s > own_s * WAITED_SHARE_MAX:
                raise WriterFailed(f"{CROWDED}: {failure}", retryable=True, tells_nothing=True) from None
            raise
        finally:
            self._turns.release()

    def probe(self, timeout_s: float) -> None:
        """Have the model say one token, without a turn; see `failing_fast.ProbedWriter`.

        A list of its models, which costs nothing, many an endpoint gives while the model itself hangs, is not there, or
        has no quota left. Any answer to the request will do, also that one token is too few.

        Raises:
            WriterFailed: none came in time, or one that any request would get.
        """
        ask = Ask(self.model, "Answer with a word.", PROBE, strict({}), 1)
        _run(self._answered, ask, time.monotonic() + min(timeout_s, self._endpoint.timeout_s))

    async def _answered(self, ask: Ask, until_s: float) -> None:
        async with self._exchange.client() as client:
            reply = await self._sent(client, wire.request_body(ask, replace(self._manner, format="text")), until_s)
        if reply.status not in wire.OK and (failure := wire.failure(reply)).misconfigured:
            raise failure

    async def _asked(self, ask: Ask, until_s: float) -> Json:
        manner: Manner = self._manner
        heeded = True
        async with self._exchange.client() as client:
            for _ in range(wire.MANNERS_MAX):
                reply = await self._sent(client, wire.request_body(ask, manner), until_s)
                if reply.status in wire.OK:
                    try:
                        made = wire.answer(reply)
                    except NotJson:
                        # It knows the field and does not heed it, this time: words are tried, and not remembered.
                        if manner.format == "text":
                            raise
                        manner, heeded = replace(manner, format="text"), False
                        continue
                    if heeded:
                        self._manner = manner  # one reference, set at once; of two threads either may win
                    return made
                following = wire.next_manner(manner, reply)
                if following is None:
                    raise wire.failure(reply)
                manner = following
        raise WriterFailed("the endpoint refuses every way to ask it", retryable=False, misconfigured=True)

    async def _sent(self, client: httpx.AsyncClient, body: bytes, until_s: float) -> Reply:
        """The endpoint's reply, asked again a few times while that may help."""
        try:
            reply = await self._exchange.sent(client, PATH, body, until_s, lambda reply: wire.failure(reply).retryable)
        except Unanswered as failed:
            raise WriterFailed(str(failed), retryable=failed.retryable) from None
        if reply.status in wire.RETRIED:
            raise wire.failure(reply)
        return reply


def _run(work: Callable[[Ask, float], Awaitable[Done]], ask: Ask, until_s: float) -> Done:
    """What `work` gives before `until_s`, by the steady clock.

    It has an event loop of its own, since only there a whole exchange can be given up at a moment of the clock.
    """

    async def within() -> Done:
        try:
            with anyio.fail_after(max(0.0, until_s - time.monotonic())):
                return await work(ask, until_s)
        except TimeoutError:
            raise WriterFailed("the model gave no answer in time", retryable=True) from None

    return anyio.run(within)
