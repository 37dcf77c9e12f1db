"""Bounds on what a client may send before anything knows who it is."""

import asyncio
import json
from collections.abc import Callable
from functools import partial

import pytest
import uvicorn
from uvicorn.server import ServerState

from loom.edges.http.protocol import HEAD_BYTES_MAX, HEAD_WAIT_S, SEND_WAIT_S, BoundedProtocol

PIECE = 16 * 1024
PIECES_MAX = 4 * HEAD_BYTES_MAX // PIECE
"""More than any refusal may wait for."""

HEAD = b"POST /v1/note.set HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = self.aborted = False
        self.unsent_bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """Nothing reads here."""

    def resume_reading(self) -> None:
        """Nothing reads here."""


class Loop(asyncio.SelectorEventLoop):
    """A loop whose timers a test sets off."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[tuple[float, asyncio.TimerHandle]] = []
        self.callbacks: dict[asyncio.TimerHandle, Callable[[], object]] = {}

    def call_later(self, delay: float, callback: Callable[..., object], *args: object, context: object = None):  # noqa: ANN201  # as the class it stands for
        del context
        handle = super().call_later(delay, callback, *args)
        self.timers.append((delay, handle))
        self.callbacks[handle] = partial(callback, *args)
        return handle


async def app(scope: object, receive: Callable[[], object], send: object) -> None:
    """Answers nothing."""
    del scope, receive, send


class Line:
    """A connection, and what its client saw."""

    def __init__(self) -> None:
        self.loop = Loop()
        config = uvicorn.Config(app, log_config=None)
        config.load()
        self.wire = Wire()
        self.protocol = BoundedProtocol(config, ServerState(), {}, self.loop)
        self.protocol.connection_made(self.wire)

    def send(self, data: bytes) -> bool:
        """Send a piece; whether the connection is still open."""
        if not self.wire.closed:
            self.protocol.data_received(data)
        return not self.wire.closed

    def waiting(self) -> list[float]:
        """The delays of the timers that would still go off."""
        return [delay for delay, handle in self.loop.timers if not handle.cancelled()]

    def set_off(self) -> None:
        """Have the last timer go off."""
        handle = self.loop.timers[-1][1]
        handle.cancel()
        self.loop.callbacks[handle]()

    def close(self) -> None:
        self.protocol.connection_lost(None)
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET /", b"a" * PIECE),
        (HEAD + b"X-Long: ", b"a" * PIECE),
        (HEAD, b"X-One: 1\r\n" * (PIECE // 10)),
        (b"", b"\r\n" * (PIECE // 2)),
    ],
    ids=["path", "one header", "many headers", "empty lines"],
)
def test_a_head_without_end_is_refused(begin: bytes, piece: bytes) -> None:
    line = Line()
    line.send(begin)
    pieces = 0
    while line.send(piece):
        pieces += 1
        assert pieces < PIECES_MAX, "the server keeps taking it in"
    head, _, body = line.wire.sent.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ")
    assert b"x-request-id: " in head
    assert json.loads(body)["detail"]["code"] == "HEAD_TOO_LARGE"
    line.close()


@pytest.mark.parametrize("piece", [b"X-One: 1\r\n" * (PIECE // 10), b"a" * PIECE], ids=["many", "one"])
def test_trailers_without_end_are_cut_off(piece: bytes) -> None:
    line = Line()
    line.send(CHUNKED + b"2\r\n{}\r\n0\r\nX-Trailer: ")
    pieces = 0
    while line.send(piece):
        pieces += 1
        assert pieces < PIECES_MAX, "the server keeps taking it in"
    line.close()


def test_a_body_in_the_smallest_chunks_is_taken() -> None:
    line = Line()
    line.send(CHUNKED)
    for _ in range(PIECES_MAX):
        assert line.send(b"1\r\na\r\n" * (PIECE // 6))
    line.close()


def test_what_is_no_http_is_refused_like_everything_else() -> None:
    line = Line()
    line.send(b"\x16\x03\x01\x02\x00")
    head, _, body = line.wire.sent.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"x-request-id: " in head
    assert json.loads(body)["detail"]["code"] == "BAD_REQUEST"
    line.close()


def test_a_connection_that_sends_no_head_is_closed_in_time() -> None:
    line = Line()
    line.send(b"GET /healthz HTTP/1.1\r\n")
    line.send(b"Host: localhost\r\n")
    assert line.waiting() == [HEAD_WAIT_S], "each byte must not begin the time anew"
    line.send(b"\r\n")
    assert line.waiting() == []
    line.close()


def test_a_client_that_takes_in_nothing_is_dropped_and_a_slow_one_is_not() -> None:
    line = Line()
    line.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    line.wire.unsent_bytes = 1000
    line.protocol.on_response_complete()
    for left in (900, 899):
        line.wire.unsent_bytes = left
        line.set_off()
        assert not line.wire.aborted
    line.set_off()
    assert line.wire.aborted
    line.close()


def test_an_answer_that_was_taken_in_is_not_waited_for() -> None:
    line = Line()
    line.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    line.protocol.on_response_complete()
    assert not line.wire.aborted
    assert SEND_WAIT_S not in line.waiting()
    line.close()
