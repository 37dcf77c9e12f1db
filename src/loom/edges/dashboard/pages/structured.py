"""Structured profiles: the namespace's schema, each user's status, and one user's properties with their evidence."""

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.pages.memories import parsed
from loom.edges.dashboard.rendering import plain
from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View
from loom.errors import LoomError, Rejected
from loom.ops.spec import NONE

LIMIT = 50
LIST, ONE = "/profile/structured", "/profile/structured/user"
FIRST = {
    "type": "object",
    "properties": {
        "diet": {"type": "string", "description": "What the user eats."},
        "city": {"type": "string", "description": "Where the user lives."},
    },
}
"""What the editor shows where there is no schema yet."""


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The pages and what their forms do."""
    return [
        dashboard.route(LIST, structured),
        dashboard.route(ONE, user),
        dashboard.route("/profile/structured/schema", save, writes=True),
        dashboard.route("/profile/structured/delete", delete, writes=True),
        dashboard.route("/profile/structured/rebuild", rebuild, writes=True),
    ]


def structured(view: View) -> Response:
    """The schema, and every user's status."""
    return shown(view, None)


def shown(view: View, sent: dict[str, str] | None) -> Response:
    """The page, with what was written in the editor when it was refused."""
    schema = view.call("profile.schema_get", version_text=view.query("version"))
    latest = schema if not view.query("version") else view.call("profile.schema_get")
    users: dict[str, Any] = {"users": [], "properties": 0, "next_cursor": ""}
    try:
        users = view.call("profile.users", limit=LIMIT, cursor=view.query("cursor"))
    except LoomError as error:
        view.alert = view.alert or error
    values = sent or {
        "schema": plain(schema["json_schema"] or FIRST),
        "sha256": latest["schema_sha256"],
    }
    return view.page("structured.html", schema=schema, latest=latest, users=users, sent=values)


def user(view: View) -> Response:
    """One user's properties, each with the memories it comes from."""
    about = {"user_id": view.query("about") or NONE}
    profile = view.call("profile.structured", **about)
    evidence = view.call("profile.evidence", **about)
    return view.page("structured_user.html", user_id=about["user_id"], profile=profile, evidence=evidence)


def save(view: View) -> Response:
    """Set the schema over the version that the editor was opened with."""
    sent = {"schema": view.text("schema"), "sha256": view.text("sha256")}
    try:
        schema = parsed(sent["schema"])
        if not isinstance(schema, dict):
            raise Rejected("json_schema: should be an object", field="json_schema")
        view.call("profile.schema_set", json_schema=schema, if_match_sha256=sent["sha256"])
    except LoomError as error:
        view.alert, view.at = error, LIST
        return shown(view, sent)
    return view.to(LIST, done="schema")


def delete(view: View) -> Response:
    """Take the schema away; its versions stay."""
    try:
        view.call("profile.schema_delete", if_match_sha256=view.text("sha256"))
    except LoomError as error:
        view.alert, view.at = error, LIST
        return shown(view, None)
    return view.to(LIST, done="no_schema")


def rebuild(view: View) -> Response:
    """Ask for a user's profile to be built anew."""
    about = view.query("about") or NONE
    view.call("profile.rebuild", user_id=about)
    return view.to(ONE, about=about, done="rebuild")
