"""The dashboard's cookie, and what shows that a write comes from one of its own pages.

The cookie is a random word. Where a person signed in, the store knows its hash;
where no sign-in is needed it names nobody, and serves the check of writes alone.
"""

import hashlib
import hmac
import re
import secrets
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from loom.access.sessions import SECRET_BYTES, SESSION_TTL_S
from loom.edges.http.hosts import is_same_server
from loom.errors import Denied, WrongOrigin

WORD = re.compile(r"[A-Za-z0-9_-]{43}")
OWN_SITES = ("same-origin", "none")
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-loom-csrf"


def name_of(request: Request) -> str:
    """The cookie's name: browsers send cookies to every port of a host, so the port is part of it."""
    try:
        port = urlsplit(f"//{request.headers.get('host', '')}").port
    except ValueError:
        port = None
    return f"loom_dashboard_{port or 0}"


def read(request: Request) -> str:
    """The cookie that was sent; empty for none, or one that this server never made."""
    sent = request.cookies.get(name_of(request), "")
    return sent if WORD.fullmatch(sent) else ""


def fresh() -> str:
    """A new word, that names nobody."""
    return secrets.token_urlsafe(SECRET_BYTES)


def put(request: Request, response: Response, cookie: str, *, signed_in: bool) -> None:
    """Have the browser keep the cookie: as long as a session lasts, or until the browser is closed."""
    response.set_cookie(
        name_of(request),
        cookie,
        max_age=SESSION_TTL_S if signed_in else None,
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="strict",
    )


def forget(request: Request, response: Response) -> None:
    """Have the browser drop the cookie."""
    response.delete_cookie(name_of(request), path="/", secure=is_secure(request), httponly=True, samesite="strict")


def is_secure(request: Request) -> bool:
    """Whether the browser came by https; a proxy says so, and who lies harms nobody else."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").lower())


def csrf_of(cookie: str) -> str:
    """What the pages of this cookie put in their forms; another site can neither read nor compute it."""
    return hashlib.sha256(f"csrf {cookie}".encode()).hexdigest()


def check_write(request: Request, cookie: str, sent: str) -> None:
    """Let a write pass that a page of this server sent.

    Raises:
        WrongOrigin: a page of another server sent it.
        Denied: the form's own mark is missing or not this cookie's.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    host = request.headers.get("host", "").lower()
    if (origin is not None and not is_same_server(origin.lower(), host)) or (site not in (None, *OWN_SITES)):
        raise WrongOrigin("only pages of this server may do this")
    if not cookie or not hmac.compare_digest(sent.encode(), csrf_of(cookie).encode()):
        raise Denied("this form is out of date; go back, load the page again, and repeat")
