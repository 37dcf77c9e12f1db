"""Code: what is indexed, its symbols and who uses them, and its files."""

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.rendering import numbered
from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View, whole
from loom.errors import LoomError, NotFound

TOP_K = 50
CALLERS = 100
LINES = 400
LEAD_LINES = 10
LIST = "/code"


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The pages and what their forms do."""
    return [
        dashboard.route(LIST, code),
        dashboard.route("/code/symbol", symbol),
        dashboard.route("/code/file", file),
        dashboard.route("/code/index", index, writes=True),
    ]


def code(view: View) -> Response:
    """How far the index is, and what a search finds in it."""
    view.at_plane("code", "symbols")
    status: dict[str, Any] | None = None
    hits: list[dict[str, Any]] | None = None
    try:
        status = view.call("code.index_status")
        if view.query("q").strip():
            where = {"path_prefix": view.query("path")}
            hits = view.call("code.search", query=view.query("q"), top_k=TOP_K, **where)["results"]
    except NotFound:
        status = None
    except LoomError as error:
        view.alert = view.alert or error
    return view.page("code.html", status=status, hits=hits)


def symbol(view: View) -> Response:
    """A symbol's definitions, and its uses."""
    view.at_plane("code", "symbols")
    named = {"name": view.query("name"), "symbol_id": view.query("id"), "path": view.query("path")}
    found = view.call("code.symbol", **named)
    uses = view.call("code.callers", **named, limit=CALLERS) if found["found"] else None
    return view.page("symbol.html", found=found, uses=uses, name=view.query("name") or view.query("id"))


def file(view: View) -> Response:
    """Some lines of a file."""
    view.at_plane("code", "symbols")
    line = whole(view.query("line"))
    start = whole(view.query("from")) or max(1, line - LEAD_LINES)
    found = view.call("code.read", path=view.query("path"), start_line=start, end_line=start + LINES - 1)
    lines = numbered(found["text"], found["start_line"])
    return view.page("code_file.html", found=found, lines=lines, line=line)


def index(view: View) -> Response:
    """Have a repository read in."""
    namespace = view.text("namespace") or view.query("ns")
    try:
        view.call("code.index", namespace=namespace, source=view.text("source"))
    except LoomError as error:
        view.alert, view.at = error, LIST
        return code(view)
    return view.to(LIST, ns=namespace, done="indexing")
