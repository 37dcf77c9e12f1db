"""How an OpenAI-compatible endpoint is spoken to: a request, bounded in time and size, asked again while that may help.

Nothing of the machine's environment counts (no proxy, no `.netrc`), nothing is sent on to another address, and an
answer that grows too large is not read to its end.
"""

import random
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import anyio
import httpx
from pydantic import SecretStr

from loom.models import openai_wire as wire
from loom.models.openai_wire import Reply

ATTEMPTS_MAX: Final = 4
BACKOFF_S: Final = 0.5
ERROR_BYTES_MAX: Final = 64 * 1024
"""Of an error's body, what is read."""


class Unanswered(Exception):
    """The endpoint gave no answer that can be read. The message holds no text of a caller.

    Attributes:
        retryable: whether asking again later may help.
    """

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


@dataclass(frozen=True)
class Exchange:
    """The way to one endpoint.

    Attributes:
        url: the address before the path, without a login or a query in it.
        api_key: sent as a bearer token; empty for none. Neither shown nor logged.
        response_bytes_max: the largest answer that is read.
        backoff_s: the longest wait before it is asked a second time; each further wait may be twice as long.
    """

    url: str
    api_key: SecretStr
    response_bytes_max: int
    backoff_s: float = BACKOFF_S

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Trust in what httpx trusts, and in what this machine does: an endpoint of one's own may have its own root."""
        context = httpx.create_ssl_context(trust_env=False)
        context.load_default_certs()
        return context

    def client(self, connections: httpx.Limits | None = None) -> httpx.AsyncClient:
        """A client for it; the caller bounds each exchange in time, and closes the client."""
        return httpx.AsyncClient(
            timeout=None,  # noqa: S113  # the whole exchange has a moment to end at
            trust_env=False,
            follow_redirects=False,
            verify=self._tls,
            limits=connections or httpx.Limits(),
        )

    async def sent(
        self, client: httpx.AsyncClient, path: str, body: bytes, until_s: float, helps: Callable[[Reply], bool]
    ) -> Reply:
        """The endpoint's reply, asked again a few times while `helps` says of an error that this may help.

        Between two times it waits as long as the endpoint asks, or else longer each time, and never beyond `until_s`.

        Raises:
            Unanswered: it cannot be reached, or its answer is too large.
        """
        for attempt in range(ATTEMPTS_MAX):
            last = attempt == ATTEMPTS_MAX - 1
            wait_s = self.backoff_s * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, not a secret
            try:
                reply = await self._exchanged(client, path, body)
            except httpx.HTTPError as error:
                if last or time.monotonic() + wait_s >= until_s:
                    failed = f"the endpoint cannot be reached ({type(error).__name__})"
                    raise Unanswered(failed, retryable=True) from None
            else:
                asked_s = wire.retry_after_s(reply, datetime.now(UTC))
                wait_s = wait_s if asked_s is None else asked_s
                over = last or time.monotonic() + wait_s >= until_s
                if reply.status not in wire.RETRIED or over or not helps(reply):
                    return reply
            await anyio.sleep(wait_s)
        raise AssertionError("the last time either replies or raises")

    async def _exchanged(self, client: httpx.AsyncClient, path: str, body: bytes) -> Reply:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "loom"}
        key = self.api_key.get_secret_value()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        async with client.stream("POST", self.url + path, content=body, headers=headers) as response:
            fine = response.status_code in wire.OK
            read = bytearray()
            async for part in response.aiter_bytes():
                read += part
                if len(read) > self.response_bytes_max:
                    raise Unanswered("the endpoint's answer is too large", retryable=False)
                if not fine and len(read) > ERROR_BYTES_MAX:
                    break
            return Reply(response.status_code, bytes(read), response.headers.get("Retry-After", ""))
