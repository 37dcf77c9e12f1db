"""Tracker: issues, and what may be the same defect, side by side."""

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View, missing, whole
from loom.errors import LoomError

LIMIT = 50
TOP_K = 5
LIST, ONE = "/tracker", "/tracker/issue"
STATES = ("open", "closed")


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The pages."""
    return [dashboard.route(LIST, tracker), dashboard.route(ONE, issue)]


def tracker(view: View) -> Response:
    """The list with its filters, or what a question finds."""
    view.at_plane("tracker", "issues")
    filters = {"state": view.query("state"), "component": view.query("component")}
    hits: list[dict[str, Any]] | None = None
    found: dict[str, Any] = {"issues": [], "total": 0, "next_cursor": ""}
    try:
        if view.query("q").strip():
            hits = view.call("tracker.search", query=view.query("q"), top_k=LIMIT, **filters)["results"]
        else:
            found = view.call("tracker.list", limit=LIMIT, cursor=view.query("cursor"), **filters)
    except LoomError as error:
        view.alert = error
    narrowed = any((*filters.values(), view.query("q"), view.query("cursor")))
    return view.page("tracker.html", found=found, hits=hits, states=STATES, narrowed=narrowed)


def issue(view: View) -> Response:
    """One issue, those that may be the same defect, and one of them beside it."""
    view.at_plane("tracker", "issues")
    found = read(view, whole(view.query("number")))
    known = found["issue"]
    check = view.call(
        "tracker.duplicate_check",
        title=known["title"],
        body=found["body"],
        component=known["component"],
        version=known["version"],
        number=known["number"],
        top_k=TOP_K,
    )
    beside = whole(view.query("with"))
    other = read(view, beside) if beside else None
    match = next((one for one in check["candidates"] if one["issue"]["number"] == beside), None)
    return view.page("issue.html", found=found, issue=known, check=check, other=other, match=match)


def read(view: View, number: int) -> dict[str, Any]:
    """An issue by its number."""
    found = view.call("tracker.get", number=number or 1)
    if not number or not found["found"]:
        raise missing("this issue")
    return found
