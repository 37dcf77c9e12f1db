"""Signing in and out."""

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import HEADERS, SEE_OTHER, View
from loom.errors import Unauthenticated


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """What needs nobody signed in, and leaving."""
    sessions = dashboard.sessions

    def form(view: View) -> Response:
        if view.session is not None:
            return onward(view)
        return view.page("sign_in.html")

    def with_token(view: View) -> Response:
        try:
            view.opened = sessions.with_token(view.text("token").strip())
        except Unauthenticated as error:
            view.alert = error
            return view.page("sign_in.html")
        return onward(view)

    def entry(view: View) -> Response:
        return view.page("enter.html", code=view.query("code"))

    def with_code(view: View) -> Response:
        try:
            view.opened = sessions.with_code(view.text("code"))
        except Unauthenticated as error:
            view.alert = error
            return view.page("sign_in.html")
        return onward(view)

    def leave(view: View) -> Response:
        sessions.close(view.cookie)
        view.ended = True
        return RedirectResponse("/sign-in", SEE_OTHER, HEADERS)

    return [
        dashboard.route("/sign-in", form, is_open=True),
        dashboard.route("/sign-in", with_token, writes=True, is_open=True),
        dashboard.route("/enter", entry, is_open=True),
        dashboard.route("/enter", with_code, writes=True, is_open=True),
        dashboard.route("/sign-out", leave, writes=True, is_open=True),
    ]


def onward(view: View) -> Response:
    """To the page that was wanted before; only to one of this server."""
    wanted = view.query("next") or view.text("next")
    inside = wanted.startswith("/") and not wanted.startswith("//") and "\\" not in wanted and wanted.isprintable()
    return RedirectResponse(wanted if inside else "/", SEE_OTHER, HEADERS)
