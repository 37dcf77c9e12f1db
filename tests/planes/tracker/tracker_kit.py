"""Helpers of the tracker's tests."""

from typing import Any

from fakes import ORG, Core
from loom.access.caller import Caller, ReadScope, Role

WRITER = Caller("writer", Role.WRITER, {"org": ORG})

TRACE = """java.lang.NullPointerException: null
\tat org.acme.net.Client.close(Client.java:123)
\tat org.acme.net.Pool.evict(Pool.java:77)
\tat org.acme.net.Reaper.sweep(Reaper.java:12)
\tat java.base/java.lang.Thread.run(Thread.java:829)
"""

ISSUES: list[dict[str, Any]] = [
    {"number": 1, "title": "Client.close throws NullPointerException", "body": TRACE, "component": "net"},
    {
        "number": 2,
        "title": "Dark mode has low contrast",
        "body": "The grey on black cannot be read.",
        "component": "ui",
    },
    {"number": 3, "title": "Upgrade the parser to 3.4.0", "body": "The new release is faster."},
    {"number": 4, "title": "Login page is slow on mobile", "body": "It takes ten seconds to show."},
    {"number": 5, "title": "Export to CSV drops the last row", "body": "Seen in src/export/csv_writer.py."},
    {
        "number": 6,
        "title": "\u767b\u5f55\u9875\u9762\u5d29\u6e83",
        "body": "\u70b9\u51fb\u767b\u5f55\u6309\u94ae\u540e\u5e94\u7528\u5d29\u6e83\u3002",
    },
]


def of_user(user_id: str, *, role: Role = Role.WRITER) -> Caller:
    """A token of one user, which reads no other user's rows."""
    return Caller(f"user-{user_id}", role, {"org": ORG, "user_id": user_id}, read_scope=ReadScope.OWN_USER)


def of_session(user_id: str, session_id: str) -> Caller:
    """A token of one conversation."""
    pins = {"org": ORG, "user_id": user_id, "session_id": session_id}
    return Caller(f"session-{session_id}", Role.WRITER, pins, read_scope=ReadScope.OWN_SESSION)


def filled(core: Core, **where: Any) -> Core:
    """The core with the issues above."""
    for issue in ISSUES:
        core.call("tracker.add", **issue, **where)
    return core


def found(core: Core, query: str, **args: Any) -> list[int]:
    """The numbers that a search finds."""
    return [hit["issue"]["number"] for hit in core.call("tracker.search", query=query, **args)["results"]]


def check(core: Core, title: str, body: str = "", **args: Any) -> dict[str, Any]:
    """A verdict."""
    return core.call("tracker.duplicate_check", title=title, body=body, **args)


def candidates(answer: dict[str, Any]) -> list[int]:
    """The numbers of a verdict's candidates."""
    return [one["issue"]["number"] for one in answer["candidates"]]
