"""Bytes to requests: uvicorn's parser, with bounds that it lacks.

Without them a client that needs no token could send a head that never ends,
and have it all kept in memory, or hold a connection for good by sending none,
or an answer by never taking it in.
"""

import asyncio
import secrets
from http import HTTPStatus
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from loom.edges.http.messages import json_of
from loom.errors import BadRequest, HeadTooLarge, LoomError

HEAD_BYTES_MAX = 64 * 1024
"""The request line and the headers of one request, trailers included; one read of the socket may come on top."""

FRAMING_A_BODY_BYTE_MAX = 8
"""What chunks may cost for each byte of the body: a body in chunks of one byte needs six."""

HEAD_WAIT_S = 30.0
"""From the connection, or the first byte of a further request, to the end of the head."""


SEND_WAIT_S = 30.0
"""How long a client may take in nothing of an answer that waits for it."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection, whose requests have a head of bounded length that comes in bounded time."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._received_bytes = 0
        self._body_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._stop_waiting()
        if self._send_timer is not None:
            self._send_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and refuse a head that is too long."""
        self._received_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        framing_bytes = self._received_bytes - self._body_bytes
        if framing_bytes > HEAD_BYTES_MAX + FRAMING_A_BODY_BYTE_MAX * self._body_bytes:
            self._refuse(HeadTooLarge(f"the request's headers are over {HEAD_BYTES_MAX} bytes; send fewer or shorter"))
        elif self._is_idle():
            self._await_head()
        else:
            self._stop_waiting()

    def on_message_begin(self) -> None:
        """A request begins; what came with its first bytes is not counted."""
        self._received_bytes = self._body_bytes = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """A piece of the body, whose length is the app's to bound."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        """The answer is handed over, but perhaps not taken in."""
        super().on_response_complete()
        self._await_sent()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the shape of every other error."""
        del msg
        self._refuse(BadRequest("what was sent is not HTTP/1.1 that can be read"))

    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_WAIT_S, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _await_sent(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes:
            self._send_timer = self.loop.call_later(SEND_WAIT_S, self._check_sent, unsent_bytes)

    def _check_sent(self, before_bytes: int) -> None:
        """Drop a client that took in nothing since; to close would wait for it without end."""
        if self.transport.get_write_buffer_size() < before_bytes:
            self._await_sent()
        else:
            self.transport.abort()

    def _refuse(self, error: LoomError) -> None:
        """Answer and close; nothing of the request reaches the app."""
        if self._is_idle():
            body = json_of(error.body())
            head = (
                f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nx-request-id: {secrets.token_hex(8)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
