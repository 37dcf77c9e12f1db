"""Overview: what is stored, what was written and read lately, and how the server is."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard import charts
from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View

PLANES = ("memories", "sections", "documents", "conversations", "issues", "symbols")
LATEST = 6
DAYS = 30


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The page, and its part that may take a moment."""
    return [dashboard.route("/", overview), dashboard.route("/health", health)]


def overview(view: View) -> Response:
    """The page; how to connect an agent, while nothing is stored."""
    found = view.call("ops.overview", namespace=None, lookback_days=DAYS)
    totals = {plane: sum(space[plane] for space in found["namespaces"]) for plane in PLANES}
    return view.page(
        "overview.html",
        found=found,
        totals=totals,
        planes=PLANES,
        latest=view.call("memory.list", order="newest", limit=LATEST, counted=False)["items"],
        readers=view.call("profile.activity", lookback_days=DAYS)["entries"],
        writes=charts.writes(found["days"]),
        reads=charts.reads(view.call("profile.reads", lookback_days=DAYS)["entries"], DAYS),
    )


def health(view: View) -> Response:
    """How the parts are. The embedder is asked for a vector, which takes a moment while it starts."""
    return view.page("part_health.html", health=view.call("ops.health", namespace=None))
