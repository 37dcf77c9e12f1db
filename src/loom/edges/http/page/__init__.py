"""A page that shows the API's description; it asks this server alone and writes text nodes alone."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FILES = {
    "/docs": ("page.html", "text/html; charset=utf-8"),
    "/docs/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/docs/page.css": ("page.css", "text/css; charset=utf-8"),
}


def page_routes() -> list[BaseRoute]:
    """The page and its two files."""
    return [_route(path, (HERE / name).read_bytes(), media) for path, (name, media) in FILES.items()]


def _route(path: str, content: bytes, media: str) -> Route:
    headers = {"content-security-policy": POLICY, "referrer-policy": "no-referrer", "content-type": media}

    async def shown(_: Request) -> Response:
        return Response(content, headers=headers)

    return Route(path, shown)
