"""Access: namespaces, the tokens that reach them, and the audit."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.access.caller import Role
from loom.access.sessions import BY_MINTING
from loom.edges.dashboard.pages.search import tags_of
from loom.edges.dashboard.rendering import moment
from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View
from loom.errors import Denied, LoomError, Rejected

KINDS = ("memory", "knowledge", "tracker", "code")
ROLES = ("viewer", "writer", "admin")
SCOPES = ("namespace", "own_user", "own_session")
PINS = ("org", "agent", "user_id")
PATH = "/access"
LIMIT = 50
KEEP = "yes"
"""What the box says, when ticked, that keeps the tokens that one minted."""

FILTERS = {"op": "op", "by": "principal", "at": "about_namespace"}
"""How a page's address names the audit's filters, and how the operation does."""


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The page and what its forms do."""
    sessions = dashboard.sessions

    def mint(view: View) -> Response:
        """Make a token, and show it this once."""
        try:
            made = view.call("token.mint", namespace=None, **wanted_token(view))
        except LoomError as error:
            view.alert, view.at = error, PATH
            return access(view)
        if view.session is not None and view.session.expires_at is None:
            # The first token ends calls without one, and would shut out the person who just made it.
            view.opened = sessions.open(view.caller, BY_MINTING)
        return view.page("minted.html", made=made)

    return [
        dashboard.route(PATH, access),
        dashboard.route("/access/mint", mint, writes=True),
        dashboard.route("/access/revoke", revoke, writes=True),
        dashboard.route("/access/create", create, writes=True),
        dashboard.route("/access/describe", describe, writes=True),
        dashboard.route("/access/delete", delete, writes=True),
    ]


def access(view: View) -> Response:
    """The namespaces that the caller reaches; for admins the tokens and the audit as well."""
    tokens: list[Any] = view.call("token.list", namespace=None)["tokens"] if view.is_admin else []
    spaces = view.call("namespace.list", namespace=None)["namespaces"]
    roles = [word for word in ROLES if Role[word.upper()] <= view.caller.role]
    words = {"kinds": KINDS, "roles": roles, "scopes": SCOPES, "keep": KEEP}
    known = {"spaces": spaces, "tokens": tokens, "kept_by": kept_by(tokens, datetime.now(UTC)), **words}
    return view.page("access.html", **known, audit=audit(view) if view.is_admin else None)


def kept_by(tokens: Sequence[Mapping[str, Any]], now: datetime) -> set[str]:
    """The ids of the tokens that minted one which is still good, themselves or through others."""
    minters = {token["token_id"]: token["minted_by"] for token in tokens}
    found: set[str] = set()
    for token in tokens:
        ends = token["expires_at"]
        is_good = token["revoked_at"] is None and (ends is None or moment(ends) > now)
        minter = token["minted_by"] if is_good else None
        while minter is not None and minter not in found:
            found.add(minter)
            minter = minters.get(minter)
    return found


def audit(view: View) -> dict[str, Any] | None:
    """A page of the audit; None for an admin who reads the rows of one user alone."""
    filters = {field: view.query(name) for name, field in FILTERS.items()}
    try:
        return view.call("audit.list", namespace=None, limit=LIMIT, cursor=view.query("cursor"), **filters)
    except Denied:
        return None
    except LoomError as error:
        view.alert = error
        return {"records": [], "next_cursor": ""}


def wanted_token(view: View) -> dict[str, Any]:
    """What a form says of a token to be made."""
    days = view.text("days").strip()
    if days and not days.isdecimal():
        raise Rejected("ttl_days: a whole number of days; empty for a token that does not end", field="ttl_days")
    names = tags_of(view.text("namespaces"))
    pins = {name: view.text(f"pin_{name}") for name in PINS if view.text(f"pin_{name}")}
    return {
        "name": view.text("name"),
        "role": view.text("role") or "writer",
        "read_scope": view.text("read_scope") or None,
        "ttl_days": int(days[:6]) if days else None,
        "pins": pins,
        **({"namespaces": names} if names else {}),
    }


def revoke(view: View) -> Response:
    """End a token, and those that it minted unless the form keeps them."""
    keep = view.text("keep_minted") == KEEP
    done = "revoked_alone" if keep else "revoked"
    return changed(view, done, "token.revoke", token_id=view.text("token_id"), keep_minted=keep)


def create(view: View) -> Response:
    """Make a namespace."""
    wanted = {"kind": view.text("kind") or "memory", "description": view.text("description")}
    return changed(view, "created", "namespace.create", name=view.text("name"), **wanted)


def describe(view: View) -> Response:
    """Say what a namespace is for."""
    wanted = {"name": view.text("name"), "description": view.text("description")}
    return changed(view, "described", "namespace.update", **wanted)


def delete(view: View) -> Response:
    """Delete a namespace with all that is in it."""
    return changed(view, "gone", "namespace.delete", name=view.text("name"), confirm=view.text("confirm"))


def changed(view: View, done: str, op: str, **args: Any) -> Response:
    """Run an operation, and show the page as it then is, or with the refusal."""
    try:
        view.call(op, namespace=None, **args)
    except LoomError as error:
        view.alert, view.at = error, PATH
        return access(view)
    return view.to(PATH, done=done)
