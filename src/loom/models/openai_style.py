"""A language model behind any endpoint that speaks OpenAI's `/chat/completions`."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import Final

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
LENGTH_PER_TOKEN: Final = 2
"""Characters that a token stands for at least, nearly always; English has about four, Chinese one or two."""

CALLS_AT_ONCE_MAX: Final = 4
"""Calls of one process at once; a model answers in seconds, and callers hold a thread meanwhile."""

TURN_TIMEOUT_S: Final = 5.0
"""How long a call waits for its turn."""

RESPONSE_BYTES_MAX: Final = 4 * 1024 * 1024


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
            raise WriterFailed("the text is too long for the model's context", retryable=False, too_long=True)
        until_s = time.monotonic() + min(timeout_s, self._endpoint.timeout_s)
        if not self._turns.acquire(timeout=max(0.0, min(TURN_TIMEOUT_S, until_s - time.monotonic()))):
            raise WriterFailed("too many calls of the model are under way", retryable=True, crowded=True)
        try:
            ask = Ask(self.model, instructions, text, made, self._endpoint.output_tokens_max)
            # An event loop of its own, since only there a whole exchange can be given up at a moment of the clock.
            return anyio.run(self._within, ask, until_s)
        finally:
            self._turns.release()

    async def _within(self, ask: Ask, until_s: float) -> Json:
        try:
            with anyio.fail_after(max(0.0, until_s - time.monotonic())):
                return await self._asked(ask, until_s)
        except TimeoutError:
            raise WriterFailed("the model gave no answer in time", retryable=True) from None

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
