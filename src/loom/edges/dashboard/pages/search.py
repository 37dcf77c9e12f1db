"""Search: one question to every plane, and why each hit is where it is."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View
from loom.errors import LoomError

RECIPES = ("fast", "balanced", "quality", "verbatim", "code", "temporal", "graph")
TOP_K = 10
SHARE = "_share"
ABSENT = ("tracker", "withheld", "timings_ms")
"""Parts that an answer lacks when there is nothing to say."""


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The page."""
    return [dashboard.route("/search", search)]


def search(view: View) -> Response:
    """The box, and the answer when something was asked."""
    asked: dict[str, Any] = {
        "query": view.query("q"),
        "recipe": view.query("recipe"),
        "namespace_scope": view.query("scope", "all_mine"),
        "explain": view.query("explain") == "1",
        "top_k": TOP_K,
        "page": view.query("page"),
        "tags": tags_of(view.query("tags")),
    }
    found: dict[str, Any] | None = None
    if asked["query"].strip():
        try:
            found = dict.fromkeys(ABSENT) | view.call("search.query", **asked)
        except LoomError as error:
            view.alert = error
    return view.page(
        "search.html", asked=asked, found=found, recipes=RECIPES, shares=shares, total=hits_of(found) if found else 0
    )


def tags_of(text: str) -> list[str]:
    """Tags as a person writes them: between commas."""
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def hits_of(found: Mapping[str, Any]) -> int:
    """How many hits an answer shows."""
    results = sum(len(found[name]["results"]) for name in ("memory", "knowledge", "conversations"))
    return results + len(found["profile"]["sections"])


def shares(components: Mapping[str, float | None]) -> list[tuple[str, float, float | None]]:
    """The parts of a hit's rank: a name, its share of the score, and the raw score it comes from."""
    names = [name.removesuffix(SHARE) for name in components if name.endswith(SHARE)]
    return [(name, components[name + SHARE] or 0.0, components.get(f"{name}_raw")) for name in names]
