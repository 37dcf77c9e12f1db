"""A language model behind any endpoint that speaks OpenAI's `/chat/completions`."""

import random
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from threading import BoundedSemaphore
from typing import Final

import anyio
import httpx
from pydantic import SecretStr

from loom.canonical import Json, encoded
from loom.models import openai_wire as wire
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

ATTEMPTS_MAX: Final = 4
BACKOFF_S: Final = 0.5
RESPONSE_BYTES_MAX: Final = 4 * 1024 * 1024
ERROR_BYTES_MAX: Final = 64 * 1024
"""Of an error's body, what is read."""


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

    Nothing of the machine's environment counts (no proxy, no `.netrc`), nothing is sent on to another address, and an
    answer that grows too large is not read to its end.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
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
            raise WriterFailed("too many calls of the model are under way", retryable=True)
        try:
            ask = Ask(self.model, instructions, text, made, self._endpoint.output_tokens_max)
            # An event loop of its own, since only there a whole exchange can be given up at a moment of the clock.
            return anyio.run(self._within, ask, until_s)
        finally:
            self._turns.release()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Trust in what httpx trusts, and in what this machine does: an endpoint of one's own may have its own root."""
        context = httpx.create_ssl_context(trust_env=False)
        context.load_default_certs()
        return context

    async def _within(self, ask: Ask, until_s: float) -> Json:
        try:
            with anyio.fail_after(max(0.0, until_s - time.monotonic())):
                return await self._asked(ask, until_s)
        except TimeoutError:
            raise WriterFailed("the model gave no answer in time", retryable=True) from None

    async def _asked(self, ask: Ask, until_s: float) -> Json:
        manner: Manner = self._manner
        heeded = True
        async with httpx.AsyncClient(
            timeout=None,  # noqa: S113  # the whole exchange has a moment to end at
            trust_env=False,
            follow_redirects=False,
            verify=self._tls,
        ) as client:
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
        failed = WriterFailed("the endpoint was not asked", retryable=True)
        for attempt in range(ATTEMPTS_MAX):
            wait_s = BACKOFF_S * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, not a secret
            try:
                reply = await self._exchanged(client, body)
            except httpx.HTTPError as error:
                failed = WriterFailed(f"the endpoint cannot be reached ({type(error).__name__})", retryable=True)
            else:
                if reply.status not in wire.RETRIED:
                    return reply
                failed = wire.failure(reply)
                if not failed.retryable:
                    break
                asked_s = wire.retry_after_s(reply, datetime.now(UTC))
                wait_s = wait_s if asked_s is None else asked_s
            if attempt == ATTEMPTS_MAX - 1 or time.monotonic() + wait_s >= until_s:
                break
            await anyio.sleep(wait_s)
        raise failed

    async def _exchanged(self, client: httpx.AsyncClient, body: bytes) -> Reply:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "loom"}
        key = self._endpoint.api_key.get_secret_value()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        url = self._endpoint.url + PATH
        async with client.stream("POST", url, content=body, headers=headers) as response:
            fine = response.status_code in wire.OK
            read = bytearray()
            async for part in response.aiter_bytes():
                read += part
                if len(read) > RESPONSE_BYTES_MAX:
                    raise WriterFailed("the endpoint's answer is too large", retryable=False)
                if not fine and len(read) > ERROR_BYTES_MAX:
                    break
            return Reply(response.status_code, bytes(read), response.headers.get("Retry-After", ""))
