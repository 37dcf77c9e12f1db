"""Helpers of the memory plane's tests."""

from collections.abc import Callable
from typing import Any

import pytest

from fakes import ORG, Core
from loom import system
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import LoomError
from loom.planes import memory

WRITER = Caller("writer", Role.WRITER, {"org": ORG})
VIEWER = Caller("viewer", Role.VIEWER, {"org": ORG})
ADMIN = Caller("admin", Role.ADMIN, {"org": ORG})


def of_user(user_id: str, *, role: Role = Role.WRITER) -> Caller:
    """A token of one user, which reads no other user's rows."""
    return Caller(f"user-{user_id}", role, {"org": ORG, "user_id": user_id}, read_scope=ReadScope.OWN_USER)


def of_session(user_id: str, session_id: str) -> Caller:
    """A token of one conversation."""
    pins = {"org": ORG, "user_id": user_id, "session_id": session_id}
    return Caller(f"session-{session_id}", Role.WRITER, pins, read_scope=ReadScope.OWN_SESSION)


def refused(error: type[LoomError], call: Callable[..., object], *args: Any, **named: Any) -> LoomError:
    """The error that a call ends with, which must be exactly of this kind."""
    with pytest.raises(error) as caught:
        call(*args, **named)
    assert type(caught.value) is error
    return caught.value


def keys(answer: dict[str, Any]) -> list[str]:
    """The keys of a search's results or a list's items."""
    return [one["memory_key"] for one in answer.get("results", answer.get("items", []))]


def found(core: Core, query: str, **args: Any) -> list[str]:
    """The keys that a search finds."""
    return keys(core.call("memory.search", query=query, **args))


def sweep(core: Core) -> None:
    """Run the plane's upkeep and the server's once."""
    for one in (*memory.SWEEPS, *system.SWEEPS):
        one(core.bench, ORG)
