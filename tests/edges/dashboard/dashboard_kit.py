"""A whole server in this process, and a browser's part of HTTP: cookies, forms, and what is on a page."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from httpx2 import Response
from starlette.testclient import TestClient

from loom import compose
from loom.access.caller import LOCAL, Caller, Transport

HERE = "http://127.0.0.1:7777"
HTML = {"accept": "text/html"}
CSRF = re.compile(r'name="csrf" value="([0-9a-f]{64})"')
Sent = Mapping[str, str] | None

PROBE = "<script>alert('loom')</script>\u202eevil\"'><img src=x onerror=alert(1)>"
"""What somebody stores to be run in a reader's browser."""


@dataclass
class Browser:
    """One browser: keeps its cookies, and sends a form's own mark along with it."""

    app: compose.App
    base_url: str = HERE
    http: TestClient = field(init=False)

    def __post_init__(self) -> None:
        self.http = TestClient(self.app.asgi, base_url=self.base_url, follow_redirects=False)

    def get(self, path: str, headers: Sent = None, /, **params: str) -> Response:
        """A page, as a browser asks for it."""
        return self.http.get(path, params=params or None, headers={**HTML, **(headers or {})})

    def page(self, path: str, /, **params: str) -> str:
        """A page that is there, its text with entities resolved."""
        answer = self.get(path, **params)
        assert answer.status_code == 200, answer.text[:2000]
        return unescape(answer.text)

    @property
    def csrf(self) -> str:
        """The mark that this browser's forms carry; any page with a form has it."""
        for path in ("/access", "/sign-in"):
            found = CSRF.search(self.get(path).text)
            if found is not None:
                return found[1]
        raise AssertionError("no page has a form")

    def send(self, path: str, form: Mapping[str, str], headers: Sent = None, /, **params: str) -> Response:
        """A form that was filled in on one of the pages."""
        marked = {"csrf": self.csrf, **form}
        return self.http.post(path, data=marked, params=params or None, headers={**HTML, **(headers or {})})

    def sign_in(self, token: str) -> None:
        """Paste a token."""
        answer = self.send("/sign-in", {"token": token})
        assert (answer.status_code, answer.headers["location"]) == (303, "/"), answer.text[:500]


def call(app: compose.App, op: str, /, *, caller: Caller = LOCAL, agent: str = "claude", **args: Any) -> dict[str, Any]:
    """An operation's answer, as an agent gets it."""
    return app.dispatcher.call(op, caller, Transport(agent=agent), args)


def mint(app: compose.App, role: str = "admin", **args: Any) -> tuple[str, str]:
    """A new token and its id."""
    made = call(app, "token.mint", name=f"a {role}", role=role, **args)
    return made["token"], made["token_id"]
