"""The dashboard at `/`: pages for people, made on the server, that call the operations as their reader.

It has no query of its own and no rights of its own. `serving` takes requests,
`view` is one of them on its way, `pages` has a module for each page,
`rendering` and `templates` make them, `static` is what browsers load.
"""

from starlette.routing import BaseRoute

from loom.edges.dashboard.pages import (
    access,
    code,
    connect,
    conversations,
    knowledge,
    memories,
    overview,
    profile,
    search,
    signing,
    structured,
    tracker,
)
from loom.edges.dashboard.serving import Dashboard, static_routes

PAGES = (
    overview,
    search,
    memories,
    profile,
    structured,
    conversations,
    knowledge,
    tracker,
    code,
    access,
    connect,
    signing,
)


def dashboard_routes(dashboard: Dashboard) -> list[BaseRoute]:
    """Every page and every static file."""
    return [*(route for page in PAGES for route in page.routes(dashboard)), *static_routes()]


__all__ = ["Dashboard", "dashboard_routes"]
