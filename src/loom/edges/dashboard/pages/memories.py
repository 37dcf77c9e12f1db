"""Memories: the list with its filters, and one memory with all that can be done to it."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.comparing import compared
from loom.edges.dashboard.pages.search import tags_of
from loom.edges.dashboard.rendering import plain
from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View, missing
from loom.errors import Conflict, LoomError, Rejected
from loom.ops.spec import NONE

LIMIT = 50
HISTORY_LIMIT = 50
DAY_S = 86_400
STATUSES = ("live", "expired", "tombstoned", "redacted")
TYPES = ("semantic", "episodic", "procedural", "decision", "constraint")
LIST, ONE = "/memories", "/memories/one"


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The pages and what their forms do."""
    return [
        dashboard.route(LIST, memories),
        dashboard.route("/memories/count", count),
        dashboard.route(ONE, memory),
        dashboard.route("/memories/edit", editor),
        dashboard.route("/memories/edit", save, writes=True),
        dashboard.route("/memories/act", act, writes=True),
    ]


def memories(view: View) -> Response:
    """A page of the list; the further rows alone, when those are asked for."""
    kind, tags, agent, user = view.query("type"), view.query("tags"), view.query("by"), view.query("about")
    filters: dict[str, Any] = {
        "prefix": view.query("prefix"),
        "contains": view.query("contains"),
        "memory_types": [kind] if kind else None,
        "tags": tags_of(tags) or None,
        "agents": [agent] if agent else None,
        "statuses": [view.query("status", "live")],
        "order": view.query("order", "newest"),
        "limit": LIMIT,
        "cursor": view.query("cursor"),
    }
    narrowed = any(view.query(name) for name in ("type", "tags", "by", "about", "prefix", "contains", "status"))
    filters["counted"] = False
    if user:
        filters |= {"user_id": user, "read_scope": "own_user"}
    try:
        found = view.call("memory.list", **filters)
    except LoomError as error:
        view.alert = error
        found: dict[str, Any] = {"items": [], "next_cursor": ""}
    return view.page("memories.html", found=found, statuses=STATUSES, types=TYPES, narrowed=narrowed)


def count(view: View) -> Response:
    """How many memories there are, as a part that comes when the list is there already."""
    return view.page("part_count.html", found=view.call("memory.list", bodies="none", limit=1))


def row(view: View) -> dict[str, str]:
    """Whose row a page or a form is about, as operations name it."""
    return {"agent": view.query("by") or NONE, "user_id": view.query("about") or NONE}


def memory(view: View) -> Response:
    """One memory: its value, what guards it, its versions, and a comparison of two."""
    key = view.query("key")
    named = {"memory_id": view.query("id")} if view.query("id") else {"memory_key": key, **row(view)}
    history = view.call("memory.history", **named, limit=HISTORY_LIMIT, before_version_text=view.query("before"))
    live = view.call("memory.get", memory_key=history["memory_key"], agent=history["agent"], user_id=history["user_id"])
    if not live["found"] or live["memory_id"] != history["memory_id"]:
        live = None
    return view.page(
        "memory.html",
        row=history,
        live=live,
        latest=history["versions"][0] if history["versions"] else None,
        difference=difference(view, history),
        old=view.query("old"),
        new=view.query("new"),
    )


def difference(view: View, history: Mapping[str, Any]) -> Any:
    """The lines of two versions that the address names; an empty list when it names none, None for too long ones."""
    if not (view.query("old") and view.query("new")):
        return []
    old, new = (plain(version_value(view, history, view.query(name))) for name in ("old", "new"))
    return compared(old, new)


def version_value(view: View, history: Mapping[str, Any], version_text: str) -> Any:
    """A version's value: from the history that was read, or read by itself."""
    for version in history["versions"]:
        if version["version_text"] == version_text:
            return version["value"] if version["value"] is not None else ""
    found = view.call(
        "memory.get",
        memory_key=history["memory_key"],
        version_text=version_text,
        agent=history["agent"],
        user_id=history["user_id"],
    )
    if not found["found"]:
        raise missing("this version")
    return found["value"]


def editor(view: View) -> Response:
    """The form for a new memory, or for another value of one."""
    key = view.query("key")
    live = view.call("memory.get", memory_key=key, **row(view)) if key else None
    if live is not None and not live["found"]:
        raise missing("this memory")
    is_text = live is None or isinstance(live["value"], str)
    sent = {
        "key": key,
        "value": plain(live["value"]) if live else "",
        "type": live["memory_type"] if live else "semantic",
        "tags": ", ".join(live["tags"]) if live else "",
        "json": "" if is_text else "1",
        "sha256": live["content_sha256"] if live else "",
    }
    return view.page("memory_edit.html", live=live, sent=sent, types=TYPES)


def save(view: View) -> Response:
    """Write what the form says; on refusal the form again, with what was written in it."""
    key, is_json = view.text("key"), view.text("json") == "1"
    try:
        value = parsed(view.text("value")) if is_json else view.text("value")
        # An update keeps what the form does not show: confidence, times, expiry.
        op = "memory.update" if view.text("sha256") else "memory.set"
        if op == "memory.set" and view.call("memory.get", memory_key=key, **row(view))["found"]:
            raise Conflict("memory_key: there is a memory of this key already; open that one to change it")
        made = view.call(
            op,
            memory_key=key,
            value=value,
            memory_type=view.text("type") or "semantic",
            tags=tags_of(view.text("tags")),
            if_match_sha256=view.text("sha256"),
            **row(view),
        )
    except LoomError as error:
        view.alert = error
        live = view.call("memory.get", memory_key=key, **row(view)) if view.text("sha256") and key else None
        sent = {name: view.text(name) for name in ("key", "value", "type", "tags", "json", "sha256")}
        return view.page("memory_edit.html", live=live, sent=sent, types=TYPES)
    where = {"key": key, "by": made["agent"], "about": made["user_id"], "id": made["memory_id"]}
    return view.to(ONE, **where, done="saved")


def parsed(text: str) -> Any:
    """JSON that a person wrote.

    Raises:
        Rejected: it is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Rejected("value: this is not JSON; correct it, or store it as text", field="value") from None


def expiry(view: View) -> dict[str, Any]:
    """When a memory is to be forgotten, in days from now; none for never."""
    days = view.text("days").strip()
    if days and not days.isdecimal():
        raise Rejected("days: a whole number of days; empty for never", field="days")
    return {"ttl_seconds": int(days[:9]) * DAY_S if days else 0}


ACTS: Mapping[str, tuple[str, Callable[[View], dict[str, Any]]]] = {
    "pin": ("memory.pin", lambda _: {"pinned": True}),
    "unpin": ("memory.pin", lambda _: {"pinned": False}),
    "lock": ("memory.lock", lambda view: {"mode": view.text("mode"), "reason": view.text("reason")}),
    "unlock": ("memory.lock", lambda _: {"mode": ""}),
    "expiry": ("memory.touch", expiry),
    "delete": ("memory.delete", lambda _: {}),
    "restore": ("memory.restore", lambda _: {}),
    "redact": ("memory.redact", lambda _: {}),
    "erase": ("memory.delete_version", lambda view: {"version_text": view.text("version")}),
}
"""What the buttons of a memory's page do: an operation, and what it takes beside the key."""


def act(view: View) -> Response:
    """Do what a button says, and show the memory as it then is, or with the refusal."""
    name = view.text("act")
    if name not in ACTS:
        raise Rejected("act: there is no such button", field="act")
    op, args = ACTS[name]
    try:
        view.call(op, memory_key=view.query("key"), **row(view), **args(view))
    except LoomError as error:
        view.alert, view.at = error, ONE
        return memory(view)
    where = {name: view.query(name) for name in ("key", "by", "about", "id")}
    return view.to(ONE, **where, done=name)
