"""A real HTTP server that speaks the protocol of language models, and says what a test wrote for it."""

import json
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from pydantic import SecretStr

from loom.models.openai_style import Endpoint, OpenAiStyle

HOLD_TIMEOUT_S = 30.0
KEY = "key-that-nobody-may-see"


@dataclass(frozen=True)
class Reply:
    """What the endpoint sends back.

    `until` holds it back until the event is set; `drop_s` sends the body a byte at a time, so far apart.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    until: Event | None = None
    drop_s: float = 0.0


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][1]["content"])

    @property
    def data(self) -> Any:
        """The user's message, which is JSON."""
        return json.loads(self.user)


Say = Callable[[Received], Reply]


def completion(content: Any, *, finish: str | None = "stop", **message: Any) -> Reply:
    """The model's text, as the protocol wraps it."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return Reply(body=json.dumps({"object": "chat.completion", "choices": [choice]}).encode())


def says(value: Any) -> Reply:
    """The model answers with this JSON."""
    return completion(json.dumps(value))


def refuses(status: int, *, retry_after: str = "", **error: Any) -> Reply:
    """The endpoint answers with an error."""
    headers = {"Retry-After": retry_after} if retry_after else {}
    return Reply(status, json.dumps({"error": {"message": "no", **error}}).encode(), headers)


def always(reply: Reply) -> Say:
    """One reply for all requests."""

    def say(got: Received) -> Reply:
        del got
        return reply

    return say


class ScriptedEndpoint:
    """Says what `script` holds, one reply a request, then what `say` makes of it. `received` has every request."""

    def __init__(self, script: Sequence[Reply | Say] = (), say: Say | None = None) -> None:
        self.script: deque[Reply | Say] = deque(script)
        self.say = say
        self.received: list[Received] = []
        self.closing = Event()
        self._mutex = Lock()
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                body = json.loads(self.rfile.read(length))
                got = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                reply = scripted.reply_to(got)
                if reply.until is not None:
                    reply.until.wait(HOLD_TIMEOUT_S)
                try:
                    self.send(reply)
                except OSError:  # the caller has hung up
                    self.close_connection = True

            def send(self, reply: Reply) -> None:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                if not reply.drop_s:
                    self.wfile.write(reply.body)
                    return
                for byte in reply.body:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    if scripted.closing.wait(reply.drop_s):
                        return

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def reply_to(self, got: Received) -> Reply:
        with self._mutex:
            self.received.append(got)
            following = self.script.popleft() if self.script else self.say
        if following is None:
            return refuses(418)
        return following if isinstance(following, Reply) else following(got)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def scripted(*script: Reply | Say, say: Say | None = None) -> Generator[ScriptedEndpoint]:
    """A running endpoint."""
    made = ScriptedEndpoint(script, say)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def writer_at(url: str, **changes: Any) -> OpenAiStyle:
    """The writer of an endpoint, with a key and room enough."""
    known: dict[str, Any] = {
        "url": url,
        "model": "scripted",
        "api_key": SecretStr(KEY),
        "timeout_s": 60.0,
        "context_tokens": 20_000,
        "output_tokens_max": 1_000,
    }
    return OpenAiStyle(Endpoint(**known | changes))
