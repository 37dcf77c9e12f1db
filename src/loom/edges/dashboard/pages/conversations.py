"""Conversations: the list, one with its turns, and a search inside."""

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from loom.edges.dashboard.serving import Dashboard
from loom.edges.dashboard.view import View, missing, whole
from loom.errors import LoomError
from loom.ops.spec import NONE

LIMIT = 30
TURNS = 50
TOP_K = 20
LIST, ONE = "/conversations", "/conversations/one"


def routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The pages and what their forms do."""
    return [
        dashboard.route(LIST, conversations),
        dashboard.route(ONE, conversation),
        dashboard.route("/conversations/delete", delete, writes=True),
    ]


def conversations(view: View) -> Response:
    """The list, or what a search finds in all of them."""
    hits = searched(view, "") if view.query("q").strip() else None
    found = view.call("conversation.list", limit=LIMIT, cursor=view.query("cursor"))
    return view.page("conversations.html", found=found, hits=hits)


def conversation(view: View) -> Response:
    """One conversation from a turn on, or what a search finds in it."""
    session, user = view.query("session"), view.query("about") or NONE
    found = view.call("conversation.get", session=session, user_id=user, start=whole(view.query("start")), limit=TURNS)
    if not found["found"]:
        raise missing("this conversation")
    hits = searched(view, session) if view.query("q").strip() else None
    return view.page("conversation.html", found=found, session=found["session"], hits=hits, start=view.query("start"))


def searched(view: View, session: str) -> list[dict[str, Any]]:
    """Turns that answer the question of the page's address."""
    try:
        found = view.call("conversation.search", query=view.query("q"), session=session, top_k=TOP_K)
    except LoomError as error:
        view.alert = error
        return []
    return found["results"]


def delete(view: View) -> Response:
    """Delete a conversation with all that was said in it."""
    view.call(
        "conversation.delete", session=view.query("session"), user_id=view.query("about") or NONE, whole_session=True
    )
    return view.to(LIST, done="talk")
