"""Connect: what each agent needs to reach this server, and a check that it is reached."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View
from loom.edges.snippets import SNIPPETS, Wanted

NAMES = {"claude": "Claude Code", "codex": "Codex", "cursor": "Cursor", "vscode": "VS Code"}
BRIDGE = ("loom", "mcp")


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The page."""
    return [dashboard.route("/connect", connect)]


def connect(view: View) -> Response:
    """The page. A server that asks this person to sign in asks agents for a token."""
    url = view.origin
    token = view.session is not None and view.session.expires_at is not None
    bridge = BRIDGE if not token else (*BRIDGE, "--url", url)
    ways = {
        name: [SNIPPETS[name](Wanted(f"{url}/mcp", token)), SNIPPETS[name](Wanted(f"{url}/mcp", token, bridge))]
        for name in NAMES
    }
    return view.page("connect.html", ways=ways, names=NAMES, token=token, url=url)
