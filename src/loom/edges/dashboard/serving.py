"""Routes: from an HTTP request to a page's function in a worker thread, and back."""

import mimetypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from loom.access.sessions import Session, Sessions
from loom.edges.dashboard import cookies
from loom.edges.dashboard.rendering import HERE, rendered
from loom.edges.dashboard.view import HEADERS, SEE_OTHER, NoSession, View
from loom.edges.http.calls import Call
from loom.edges.http.lifecycle import Lifecycle
from loom.edges.http.messages import LABEL_KEY, body_of, request_id_of
from loom.edges.last import guarded
from loom.edges.workers import Workers
from loom.errors import BadRequest, LoomError, NotFound, Unauthenticated

FORM = "application/x-www-form-urlencoded"
FIELDS_MAX = 200
STATIC_SUFFIXES = (".js", ".css", ".svg")
STATIC_HEADERS = {"cache-control": "public, max-age=31536000, immutable", "cross-origin-resource-policy": "same-origin"}

Page = Callable[[View], Response]
"""Answers one request; runs in a worker thread."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What the dashboard is made of.

    Attributes:
        call: `Dispatcher.call`.
        sessions: who is signed in.
        workers: the threads that pages are made in; shared with the other edges.
        lifecycle: refuses requests while the server stops.
        version: the server's version.
        namespace: the namespace of a call that names none.
        body_length_max: bytes.
    """

    call: Call
    sessions: Sessions
    workers: Workers
    lifecycle: Lifecycle
    version: str
    namespace: str
    body_length_max: int

    def route(self, path: str, page: Page, *, writes: bool = False, is_open: bool = False) -> Route:
        """A route to a page: one that is read, or one that a form is sent to.

        `is_open` for those that need nobody signed in.
        """

        async def served(request: Request) -> Response:
            request.scope[LABEL_KEY] = f"dashboard {path}"
            try:
                self.lifecycle.check()
                body = await body_of(request.scope, request.receive, self.body_length_max) if writes else b""
                return await guarded(
                    lambda: self.workers.run(lambda: self._answer(request, body, page, is_open)),
                    request_id_of(request.scope),
                )
            except LoomError as error:
                return self._view(request, None).failed(error)

        return Route(path, served, methods=["POST" if writes else "GET"])

    def missing(self, request: Request) -> Response:
        """The page for an address that has none."""
        view = self._view(request, None)
        return view.failed(NotFound("there is no page at this address"))

    def _answer(self, request: Request, body: bytes, page: Page, is_open: bool) -> Response:  # noqa: FBT001
        if comes_from_elsewhere(request):
            return Response(rendered("again.html"), 200, HEADERS, "text/html")
        view = self._view(request, self._session(request))
        try:
            if request.method == "POST":
                view.body, view.form = body, form_of(request, body)
                sent = view.form.get(cookies.CSRF_FIELD) or request.headers.get(cookies.CSRF_HEADER, "")
                cookies.check_write(request, cookies.read(request), sent)
            if view.session is None and not is_open:
                raise NoSession
            response = page(view)
        except NoSession:
            response = to_sign_in(view)
        except LoomError as error:
            response = view.failed(error)
        self._cookie(view, response)
        return response

    def _session(self, request: Request) -> Session | None:
        try:
            return self.sessions.of(cookies.read(request))
        except Unauthenticated:
            return None

    def _view(self, request: Request, session: Session | None) -> View:
        cookie = cookies.read(request) or cookies.fresh()
        return View(request, cookie, session, self.call, self.version, self.namespace)

    def _cookie(self, view: View, response: Response) -> None:
        if view.opened:
            cookies.put(view.request, response, view.opened, signed_in=True)
        elif view.ended:
            cookies.forget(view.request, response)
        elif not cookies.read(view.request):
            cookies.put(view.request, response, view.cookie, signed_in=False)


def comes_from_elsewhere(request: Request) -> bool:
    """Whether a link on another site led here, so that the browser kept the cookie back.

    The page is then loaded once more, by itself, and the cookie comes along; answered at once, a person who is signed
    in would be met as a stranger, and given a new cookie in place of the session's.
    """
    elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return request.method == "GET" and elsewhere and not cookies.read(request)


def form_of(request: Request, body: bytes) -> Mapping[str, str]:
    """The fields of a form; none where the body is no form. Of a field that is sent twice the last one counts.

    Raises:
        BadRequest: it cannot be read.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return {}
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"))
    except ValueError:
        raise BadRequest("the form cannot be read") from None


def to_sign_in(view: View) -> Response:
    """Send somebody who is not signed in there, and back afterwards."""
    here = view.request.url.path + (f"?{view.request.url.query}" if view.request.url.query else "")
    target = "/sign-in" if view.request.method != "GET" or here == "/" else "/sign-in?" + urlencode({"next": here})
    if view.is_part:
        return Response("", 401, {**HEADERS, "hx-redirect": target})
    return RedirectResponse(target, SEE_OTHER, HEADERS)


def static_routes() -> list[BaseRoute]:
    """A route for each static file."""
    found = sorted(path for path in (HERE / "static").iterdir() if path.suffix in STATIC_SUFFIXES)
    icon = (HERE / "static" / "icon.svg").read_bytes()
    return [
        *(_static(f"/static/{path.name}", path.name, path.read_bytes()) for path in found),
        _static("/favicon.ico", "icon.svg", icon),
    ]


def _static(path: str, name: str, content: bytes) -> Route:
    media = mimetypes.guess_type(name)[0] or "application/octet-stream"
    media = "text/javascript" if media.endswith("javascript") else media

    async def shown(_: Request) -> Response:
        return Response(content, headers=STATIC_HEADERS, media_type=media)

    return Route(path, shown)
