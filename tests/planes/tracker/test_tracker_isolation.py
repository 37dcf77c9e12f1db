"""Whatever is reported where, by whom: no read shows an issue beyond its org, namespace, user, session and token."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import Clock, Core, core_of
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import LoomError
from loom.planes import tracker
from loom.storage.migrate import from_package
from loom.storage.sqlite import SqliteDatabase, SqliteSettings

ORGS, NAMESPACES = ("o1", "o2"), ("n1", "n2")
USERS, SESSIONS = ("-", "u1", "u2"), ("-", "s1", "s2")
NUMBERS = (1, 2, 3)


@dataclass(frozen=True)
class Written:
    """One issue and where it is."""

    org: str
    namespace: str
    user_id: str
    session_id: str
    number: int

    @property
    def mark(self) -> str:
        """A word that no other issue holds."""
        return f"mark{self.org}{self.namespace}{self.user_id}{self.session_id}{self.number}".replace("-", "none")


@dataclass(frozen=True)
class Asker:
    """A token and what a request of it names."""

    org: str
    namespace: str
    user_id: str
    session_id: str
    ceiling: ReadScope
    scope: ReadScope
    namespaces: frozenset[str] | None

    def caller(self) -> Caller:
        pins = {"org": self.org}
        if self.ceiling < ReadScope.NAMESPACE:
            pins["user_id"] = self.user_id
        if self.ceiling < ReadScope.OWN_USER:
            pins["session_id"] = self.session_id
        return Caller("asker", Role.VIEWER, pins, self.namespaces, self.ceiling)

    def where(self) -> Mapping[str, str]:
        return {"namespace": self.namespace, "user_id": self.user_id, "session_id": self.session_id}

    def may_see(self, one: Written) -> bool:
        if (one.org, one.namespace) != (self.org, self.namespace):
            return False
        if self.namespaces is not None and self.namespace not in self.namespaces:
            return False
        scope = min(self.ceiling, self.scope)
        if scope is ReadScope.NAMESPACE or one.user_id == "-":
            return True
        if one.user_id != self.user_id:
            return False
        return scope is ReadScope.OWN_USER or one.session_id == self.session_id


written = st.builds(
    Written,
    org=st.sampled_from(ORGS),
    namespace=st.sampled_from(NAMESPACES),
    user_id=st.sampled_from(USERS),
    session_id=st.sampled_from(SESSIONS),
    number=st.sampled_from(NUMBERS),
)
askers = st.builds(
    Asker,
    org=st.sampled_from(ORGS),
    namespace=st.sampled_from(NAMESPACES),
    user_id=st.sampled_from(("u1", "u2")),
    session_id=st.sampled_from(("s1", "s2")),
    ceiling=st.sampled_from(list(ReadScope)),
    scope=st.sampled_from(list(ReadScope)),
    namespaces=st.sampled_from((None, frozenset({"n1"}), frozenset({"n1", "n2"}))),
)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    rows=st.lists(written, max_size=10, unique_by=lambda one: (one.org, one.namespace, one.user_id, one.number)),
    asker=askers,
)
def test_no_read_reaches_beyond(tmp_path_factory: pytest.TempPathFactory, rows: list[Written], asker: Asker) -> None:
    clock = Clock()
    store = SqliteDatabase(
        tmp_path_factory.mktemp("isolation"),
        from_package("loom"),
        SqliteSettings(synchronous="OFF", clock_ns=clock.nanoseconds),
    )
    with ThreadPoolExecutor(2) as pool:
        core = core_of(tracker.OPS, tracker.JOBS, {}, store, clock, pool)
        for one in rows:
            writer = Caller("writer", Role.WRITER, {"org": one.org})
            where = {"namespace": one.namespace, "user_id": one.user_id, "session_id": one.session_id}
            core.call("tracker.add", caller=writer, number=one.number, title=f"crash {one.mark}", **where)
        shown = everything_shown(core, asker)
    store.close()
    for one in rows:
        if not asker.may_see(one):
            assert one.mark not in shown


def everything_shown(core: Core, asker: Asker) -> str:
    """Every word that the reads of the plane give the asker."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("tracker.search", {"query": "crash", "top_k": 100}),
        ("tracker.duplicate_check", {"title": "crash", "top_k": 10}),
        *(("tracker.get", {"number": number}) for number in NUMBERS),
    ]
    answers: list[object] = []
    for op, args in calls:
        try:
            answers.append(
                core.call(op, caller=asker.caller(), read_scope=asker.scope.word, **{**asker.where(), **args})
            )
        except LoomError as error:
            answers.append(error.message)
    return json.dumps(answers)


def test_what_may_be_seen_is_shown(core: Core) -> None:
    one = Written("dev", "local", "u1", "s1", 1)
    core.call("tracker.add", number=1, title=f"crash {one.mark}", user_id="u1", session_id="s1")
    asker = Asker("dev", "local", "u1", "s1", ReadScope.OWN_SESSION, ReadScope.NAMESPACE, None)
    assert asker.may_see(one)
    assert everything_shown(core, asker).count(one.mark) == 3
