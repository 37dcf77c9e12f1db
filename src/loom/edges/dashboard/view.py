"""One request to the dashboard: who asks, what for, and how to call operations and answer with a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from loom.access.caller import Caller, Role, Transport
from loom.access.sessions import Session
from loom.edges.dashboard import cookies
from loom.edges.dashboard.rendering import rendered
from loom.edges.http.calls import Call
from loom.edges.http.messages import request_id_of
from loom.errors import Denied, LoomError, NotFound, Unauthenticated
from loom.ops.spec import NONE

IDENTITY = {"org": "org", "ns": "namespace", "agent": "agent", "user": "user_id"}
"""How a page's address names the identity that was chosen, and how operations do."""

NAVIGATION = (
    ("/", "Overview"),
    ("/search", "Search"),
    ("/memories", "Memories"),
    ("/profile", "Profile"),
    ("/conversations", "Conversations"),
    ("/knowledge", "Knowledge"),
    ("/tracker", "Tracker"),
    ("/code", "Code"),
    ("/access", "Access"),
    ("/connect", "Connect"),
)
DONE = {
    "saved": "Saved.",
    "pin": "Pinned.",
    "unpin": "Unpinned.",
    "lock": "Locked.",
    "unlock": "Unlocked.",
    "expiry": "The expiry is set.",
    "delete": "Deleted. It can be restored for a while.",
    "restore": "Restored.",
    "redact": "Redacted for good.",
    "erase": "That version is erased for good.",
    "schema": "The schema is set. Profiles are built anew.",
    "no_schema": "The schema is deleted.",
    "rebuild": "A build was asked for.",
    "revoked": "The token has ended, and those that it minted.",
    "revoked_alone": "The token has ended. Those that it minted are still good.",
    "created": "The namespace is made.",
    "described": "Saved.",
    "gone": "The namespace is gone.",
    "talk": "The conversation is deleted.",
    "document": "The document is deleted.",
    "indexing": "The repository is being read in.",
}
"""What was done, by the word that a redirect carries."""

DIGITS_MAX = 9
SEE_OTHER = 303
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # with none at all, browsers send forms with the Origin null
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class NoSession(Exception):
    """A page for those who are signed in was asked for by somebody who is not."""


@dataclass
class View:
    """A request, on its way through a page's function. One thread has it.

    Attributes:
        request: the HTTP request; its body is in `form` or `body`.
        cookie: the cookie's word, sent or new.
        session: who is signed in; None for nobody.
        run: `Dispatcher.call`.
        form: the fields of a form that was sent.
        body: the bytes that were sent.
        version: the server's version.
        default_namespace: the one of a call that names none.
        opened: the cookie of a session that this request began.
        ended: whether this request ended its session.
        alert: what failed, to be shown on the page.
        at: the path of the page that is shown in place of the one that was asked for; empty for that one.
        in_plane: whether the page is about a plane that has namespaces of its own.
    """

    request: Request
    cookie: str
    session: Session | None
    run: Call
    version: str
    default_namespace: str
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    opened: str = ""
    ended: bool = False
    alert: LoomError | None = None
    at: str = ""
    in_plane: bool = False

    @property
    def caller(self) -> Caller:
        """Who asks.

        Raises:
            NoSession: nobody is signed in.
        """
        if self.session is None:
            raise NoSession
        return self.session.caller

    @property
    def can_write(self) -> bool:
        """Whether to show what writes; the dispatcher decides."""
        return self.session is not None and self.caller.role >= Role.WRITER

    @property
    def is_admin(self) -> bool:
        """Whether to show what admins do; the dispatcher decides."""
        return self.session is not None and self.caller.role >= Role.ADMIN

    @property
    def csrf(self) -> str:
        """What forms carry along."""
        return cookies.csrf_of(self.opened or self.cookie)

    @property
    def path(self) -> str:
        """The page's path."""
        return self.at or self.request.url.path

    @property
    def is_part(self) -> bool:
        """Whether a piece of a page was asked for, to put into one that is shown."""
        return self.request.headers.get("hx-request") == "true"

    def query(self, name: str, default: str = "") -> str:
        """A value of the page's address."""
        return self.request.query_params.get(name, default)

    def text(self, name: str) -> str:
        """A field of the form, with line ends as stored text has them."""
        return self.form.get(name, "").replace("\r\n", "\n")

    @cached_property
    def spaces(self) -> Sequence[Mapping[str, Any]]:
        """The namespaces the caller reaches, by name."""
        try:
            found: list[dict[str, Any]] = self.call("namespace.list", namespace=None)["namespaces"]
        except LoomError:
            return ()
        return sorted(found, key=lambda space: str(space["name"]))

    @cached_property
    def namespace(self) -> str:
        """The namespace that the page is about: the chosen one, else the usual one."""
        chosen = self.query("ns")
        if chosen:
            return chosen
        caller = self.caller
        if caller.namespaces is not None:
            latest = max(self.spaces, key=lambda space: int(space["last_version"]), default=None)
            return str(latest["name"]) if latest else min(caller.namespaces, default=NONE)
        return self.default_namespace

    @property
    def space_names(self) -> Sequence[str]:
        """The names of the namespaces the caller reaches."""
        return [str(space["name"]) for space in self.spaces]

    @property
    def pages(self) -> Sequence[tuple[str, str]]:
        """What the navigation offers: paths and names."""
        return NAVIGATION

    @property
    def section(self) -> str:
        """The page of the navigation that this one belongs to; empty for none."""
        first = "/" + self.path.split("/")[1]
        return first if first in dict(NAVIGATION) else ""

    @property
    def origin(self) -> str:
        """This server's own address, as the browser reached it."""
        scheme = "https" if cookies.is_secure(self.request) else "http"
        return f"{scheme}://{self.request.headers.get('host', '')}"

    @property
    def done(self) -> str:
        """What the write before this page did, in words of ours."""
        return DONE.get(self.query("done"), "")

    def same(self, **changes: str) -> str:
        """The address of this page, with some of its values changed; empty ones are left out."""
        known = {**self.request.query_params, **changes}
        kept = {name: value for name, value in known.items() if value != "" and name != "done"}
        return f"{self.path}?{urlencode(kept, quote_via=quote)}" if kept else self.path

    def at_plane(self, kind: str, counted: str) -> None:
        """Make this a page about a plane whose namespaces may stand in an org of their own.

        The switch then offers those of the plane, and the page is about the chosen one of them, else about the one
        written last.
        """
        every = self.call("ops.overview", namespace=None, lookback_days=1, planes=[counted])["namespaces"]
        self.spaces = [space for space in every if space["kind"] == kind or space[counted]]
        if self.query("ns") not in self.space_names and self.spaces:
            self.namespace = str(self.spaces[0]["name"])
        self.in_plane = True

    def to_page(self, path: str) -> str:
        """The address of another page of the navigation; a plane's own namespace does not go along."""
        return self.link(path) if not self.in_plane else self.link(path, ns=None)

    @property
    def chosen(self) -> Mapping[str, str]:
        """The identity in the page's address, as it is named there."""
        return {name: self.query(name) for name in IDENTITY if self.query(name)}

    def pinned(self, name: str) -> str:
        """The value that the caller's token fixes for a field of the identity; empty for none."""
        return self.caller.pins.get(name, "")

    def call(self, op: str, /, **args: Any) -> dict[str, Any]:
        """An operation's answer, as this caller with the identity that was chosen.

        An identity field in `args` comes before the chosen one, and None leaves it out. What the token fixes is
        never sent.
        """
        known: dict[str, Any] = {field: self.query(name) for name, field in IDENTITY.items() if self.query(name)}
        if "namespace" not in args:
            known["namespace"] = self.namespace
        known.setdefault("agent", NONE)
        known |= args
        sent = {
            name: value
            for name, value in known.items()
            if name not in ("org", "namespace", "agent", "user_id") or (value is not None and not self.pinned(name))
        }
        transport = Transport(request_id=request_id_of(self.request.scope), unnoticed=True)
        return self.run(op, self.caller, transport, sent)

    def link(self, path: str, /, **params: object) -> str:
        """The address of a page of this dashboard, with the identity that was chosen. Empty values are left out."""
        known = {**self.chosen, **{name: "" if value is None else str(value) for name, value in params.items()}}
        known = {name: value for name, value in known.items() if value}
        return f"{path}?{urlencode(known, quote_via=quote)}" if known else path

    def page(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """A page."""
        status = self.alert.status if self.alert is not None and status == 200 else status  # noqa: PLR2004
        return Response(rendered(template, view=self, **values), status, HEADERS, "text/html")

    def to(self, path: str, /, **params: object) -> Response:
        """Send the browser to another page of this dashboard, after a write."""
        return RedirectResponse(self.link(path, **params), SEE_OTHER, HEADERS)

    def failed(self, error: LoomError) -> Response:
        """The page that says what went wrong."""
        return self.page("error.html", error.status, error=error)


def whole(text: str) -> int:
    """A number in an address; 0 for what is none, or too large for any place."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX else 0


def missing(what: str) -> NotFound:
    """The error of something that an operation did not find, as data."""
    return NotFound(f"{what} is not here; it may be in another namespace, or out of your reach")


__all__ = ["HEADERS", "Denied", "NoSession", "Unauthenticated", "View", "missing", "whole"]
