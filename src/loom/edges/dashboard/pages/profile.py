"""Profile: sections and their room, how an agent gets them, who read them, and one section's text and past."""

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard import charts
from loom.edges.dashboard.comparing import compared
from loom.edges.dashboard.pages.memories import difference, row
from loom.edges.dashboard.rendering import plain
from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View, missing, whole
from loom.errors import LoomError, Rejected, ShaMismatch
from loom.ops.spec import NONE

LIMIT = 100
HISTORY_LIMIT = 50
DAYS = 30
CHAR_LIMIT = 8192
LIST, ONE = "/profile", "/profile/section"
FORMATS = ("markdown", "xml")


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The pages and what their forms do."""
    return [
        dashboard.route(LIST, profile),
        dashboard.route(ONE, section),
        dashboard.route(ONE, save, writes=True),
        dashboard.route("/profile/new", new),
        dashboard.route("/profile/delete", delete, writes=True),
        dashboard.route("/profile/restore", restore, writes=True),
    ]


def profile(view: View) -> Response:
    """Every section, the fragment in both formats, and the readers."""
    every = view.call("profile.list")["sections"]
    start = whole(view.query("from"))
    reads = view.call("profile.reads", lookback_days=DAYS)["entries"]
    return view.page(
        "profile.html",
        sections=every[start : start + LIMIT],
        following=start + LIMIT if len(every) > start + LIMIT else 0,
        fragments={name: view.call("profile.render", format=name) for name in FORMATS},
        readers=view.call("profile.activity", lookback_days=DAYS)["entries"],
        reads=charts.reads(reads, DAYS),
    )


def section(view: View) -> Response:
    """One section, to read and to edit."""
    return shown(view, None)


def new(view: View) -> Response:
    """The form for a section that is not there yet."""
    sent = {"label": view.query("label"), "value": "", "char_limit": str(CHAR_LIMIT), "sha256": ""}
    return view.page("section_new.html", sent=sent)


def shown(view: View, sent: dict[str, str] | None) -> Response:
    """A section's page, with what was written in the form when it was refused."""
    label = view.query("label")
    history = view.call("memory.history", memory_key=label, **row(view), limit=HISTORY_LIMIT)
    live = view.call("memory.get", memory_key=label, **row(view))
    if not live["found"] or live["memory_id"] != history["memory_id"]:
        live = None
    values = sent or {
        "value": plain(live["value"]) if live else "",
        "char_limit": str(live["char_limit"] or CHAR_LIMIT) if live else str(CHAR_LIMIT),
        "sha256": live["content_sha256"] if live else "",
    }
    return view.page(
        "section.html",
        row=history,
        live=live,
        sent=values,
        difference=difference(view, history),
        old=view.query("old"),
        new=view.query("new"),
    )


def save(view: View) -> Response:
    """Write a section over the version that the form was made from; both texts when another one came first."""
    label = view.query("label") or view.text("label")
    sent = {name: view.text(name) for name in ("label", "value", "char_limit", "sha256")}
    try:
        view.call(
            "profile.set",
            label=label,
            value=sent["value"],
            char_limit=limit_of(sent["char_limit"]),
            if_match_sha256=sent["sha256"],
            **row(view),
        )
    except ShaMismatch as error:
        return conflict(view, label, sent, error)
    except LoomError as error:
        view.alert = error
        if not view.query("label"):
            return view.page("section_new.html", sent=sent)
        return shown(view, sent)
    return view.to(ONE, label=label, by=view.query("by"), about=view.query("about"), done="saved")


def conflict(view: View, label: str, sent: dict[str, str], error: ShaMismatch) -> Response:
    """Both texts, and the way on from each. Nothing was written."""
    live = view.call("memory.get", memory_key=label, **row(view))
    theirs = plain(live["value"]) if live["found"] else ""
    return view.page(
        "conflict.html",
        error.status,
        label=label,
        sent=sent,
        theirs=theirs,
        sha256=live["content_sha256"] if live["found"] else "",
        difference=compared(theirs, sent["value"]),
    )


def limit_of(text: str) -> int:
    """A cap that a person wrote.

    Raises:
        Rejected: it is no number.
    """
    if not text.strip().isdecimal():
        raise Rejected("char_limit: a whole number of characters", field="char_limit")
    return int(text.strip()[:12])


def delete(view: View) -> Response:
    """End a section."""
    return ended(view, "memory.delete")


def restore(view: View) -> Response:
    """Bring a section back."""
    return ended(view, "memory.restore")


def ended(view: View, op: str) -> Response:
    """Delete or restore, and show the section as it then is, or with the refusal."""
    label = view.query("label")
    if not label:
        raise missing("a section without a label")
    try:
        view.call(op, memory_key=label, **row(view))
    except LoomError as error:
        view.alert, view.at = error, ONE
        return shown(view, None)
    where: dict[str, Any] = {"label": label, "by": view.query("by", NONE), "about": view.query("about", NONE)}
    return view.to(ONE, **where, done=op.partition(".")[2])
