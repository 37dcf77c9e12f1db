"""Knowledge: documents, how they come in, and one read by its lines."""

import base64
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.pages.search import tags_of
from loom.edges.dashboard.rendering import numbered
from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import HEADERS, View, whole
from loom.errors import LoomError

LIMIT = 50
LINES = 200
LEAD_LINES = 4
"""Lines shown before a cited one."""

TOP_K = 20
STATES = ("ready", "pending", "failed")
LIST, ONE = "/knowledge", "/knowledge/document"


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The pages, and what their forms and the upload do."""
    return [
        dashboard.route(LIST, documents),
        dashboard.route(ONE, document),
        dashboard.route("/knowledge/add", add, writes=True),
        dashboard.route("/knowledge/part", part, writes=True),
        dashboard.route("/knowledge/finish", finish, writes=True),
        dashboard.route("/knowledge/delete", delete, writes=True),
    ]


def documents(view: View) -> Response:
    """The list with its filters, or the passages that a question finds."""
    hits: list[dict[str, Any]] | None = None
    try:
        if view.query("q").strip():
            hits = view.call("knowledge.search", query=view.query("q"), top_k=TOP_K)["results"]
        found = view.call(
            "knowledge.list",
            uri_prefix=view.query("prefix"),
            tags=tags_of(view.query("tags")) or None,
            states=[view.query("state")] if view.query("state") else None,
            limit=LIMIT,
            cursor=view.query("cursor"),
        )
    except LoomError as error:
        view.alert = error
        found: dict[str, Any] = {"items": [], "ready": 0, "pending": 0, "failed": 0, "next_cursor": ""}
    narrowed = any(view.query(name) for name in ("prefix", "tags", "state"))
    return view.page("knowledge.html", found=found, hits=hits, states=STATES, narrowed=narrowed)


def document(view: View) -> Response:
    """Some lines of a revision, with the cited ones marked."""
    cited = whole(view.query("line"))
    first = whole(view.query("from")) or max(1, cited - LEAD_LINES)
    found = view.call(
        "knowledge.get",
        document_id=view.query("id"),
        revision=whole(view.query("revision")),
        first_line=first,
        first_character=whole(view.query("character")),
        line_count=LINES,
        page=whole(view.query("page")),
        **owner(view),
    )
    hits: list[dict[str, Any]] | None = None
    if view.query("q").strip():
        inside = {"document_id": view.query("id"), **owner(view)}
        hits = view.call("knowledge.search", query=view.query("q"), top_k=TOP_K, per_document=TOP_K, **inside)[
            "results"
        ]
    lines = numbered(found["text"], found["first_line"])
    return view.page(
        "document.html", found=found, lines=lines, cited=(cited, whole(view.query("to")) or cited), hits=hits
    )


def owner(view: View) -> dict[str, str]:
    """The user whose document a page is about, where its address names one."""
    return {"user_id": view.query("about")} if view.query("about") else {}


def add(view: View) -> Response:
    """Keep a text that was pasted."""
    try:
        made = view.call(
            "knowledge.add",
            text=view.text("text"),
            title=view.text("title"),
            uri=view.text("uri"),
            tags=tags_of(view.text("tags")),
        )
    except LoomError as error:
        view.alert, view.at = error, LIST
        return documents(view)
    return view.to(ONE, id=made["document_id"], done="saved")


def part(view: View) -> Response:
    """Take one part of a file that is being sent; the script sends the next."""
    content = base64.b64encode(view.body).decode()
    sent = {"upload_id": view.query("upload_id"), "part": whole(view.query("part"))}
    return answered(view, "knowledge.upload", {**sent, "content_base64": content})


def finish(view: View) -> Response:
    """Make a document of a file whose parts have all come."""
    name = view.text("file_name")
    wanted = {"upload_id": view.text("upload_id"), "file_name": name, "uri": name, "tags": tags_of(view.text("tags"))}
    return answered(view, "knowledge.add", wanted)


def answered(view: View, op: str, args: dict[str, Any]) -> Response:
    """An operation's answer for the script, or why it was refused."""
    try:
        return JSONResponse(view.call(op, **args), headers=HEADERS)
    except LoomError as error:
        return JSONResponse(error.body(), error.status, HEADERS)


def delete(view: View) -> Response:
    """Delete a document with all its revisions."""
    view.call("knowledge.delete", document_id=view.query("id"), **owner(view))
    return view.to(LIST, done="document")
