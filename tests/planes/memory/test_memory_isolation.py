"""Whatever is written where, by whom: a read shows nothing beyond its org, namespace, user, session and token."""

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
from loom.ledger import embedding
from loom.planes import memory
from loom.storage.migrate import from_package
from loom.storage.sqlite import SqliteDatabase, SqliteSettings

ORGS, NAMESPACES, AGENTS = ("o1", "o2"), ("n1", "n2"), ("a1", "a2")
USERS, SESSIONS, KEYS = ("-", "u1", "u2"), ("-", "s1", "s2"), ("k1", "k2", "k3")


@dataclass(frozen=True)
class Written:
    """One row and where it is."""

    org: str
    namespace: str
    agent: str
    user_id: str
    session_id: str
    memory_key: str
    kind: str


@dataclass(frozen=True)
class Asker:
    """A token and what a request of it names."""

    org: str
    namespace: str
    agent: str
    user_id: str
    session_id: str
    ceiling: ReadScope
    scope: ReadScope
    namespaces: frozenset[str] | None

    @property
    def caller(self) -> Caller:
        pins: Mapping[str, str] = {"org": self.org}
        return Caller("t", Role.ADMIN, pins, self.namespaces, self.ceiling)

    @property
    def where(self) -> dict[str, str]:
        return {
            "namespace": self.namespace,
            "agent": self.agent,
            "user_id": self.user_id,
            "session_id": self.session_id,
            "read_scope": self.scope.word,
        }

    def may_see(self, row: Written, *, all_mine: bool = False) -> bool:
        """The rule, said once more in other words."""
        reached = self.namespaces is None or row.namespace in self.namespaces
        if row.org != self.org or not reached or (row.namespace != self.namespace and not all_mine):
            return False
        scope = min(self.ceiling, self.scope)
        if scope is ReadScope.NAMESPACE or row.user_id == "-":
            return True
        if row.user_id != self.user_id:
            return False
        return scope is ReadScope.OWN_USER or row.session_id == self.session_id


ROWS = st.builds(
    Written,
    st.sampled_from(ORGS),
    st.sampled_from(NAMESPACES),
    st.sampled_from(AGENTS),
    st.sampled_from(USERS),
    st.sampled_from(SESSIONS),
    st.sampled_from(KEYS),
    st.sampled_from(["semantic", "semantic", "profile"]),
)
ASKERS = st.builds(
    Asker,
    st.sampled_from(ORGS),
    st.sampled_from(NAMESPACES),
    st.sampled_from([*AGENTS, "-"]),
    st.sampled_from(USERS),
    st.sampled_from(SESSIONS),
    st.sampled_from(list(ReadScope)),
    st.sampled_from(list(ReadScope)),
    st.sampled_from([None, frozenset({"n1"}), frozenset({"n1", "n2"})]),
)


def write(core: Core, rows: list[Written]) -> dict[str, Written]:
    """Write each row with a mark that no other has; mark -> row of those that were written."""
    marks: dict[str, Written] = {}
    for number, row in enumerate(rows):
        mark = f"mark{number:03}x"
        try:
            core.call(
                "memory.set",
                org=row.org,
                namespace=row.namespace,
                agent=row.agent,
                user_id=row.user_id,
                session_id=row.session_id,
                memory_key=row.memory_key,
                memory_type=row.kind,
                value=f"walrus {mark}",
            )
        except LoomError:
            continue
        marks[mark] = row
    return marks


def reads(core: Core, asker: Asker) -> list[tuple[str, bool, dict[str, Any]]]:
    """Every read op's answers for the asker: op, whether it reads all of the caller's namespaces, answer."""
    caller, where = asker.caller, asker.where
    answers: list[tuple[str, bool, dict[str, Any]]] = []

    def ask(op: str, *, all_mine: bool = False, **args: Any) -> dict[str, Any]:
        try:
            answer = core.call(op, caller=caller, **where, **args)
        except LoomError as error:
            answer = {"error": error.message, **error.extras}
        answers.append((op, all_mine, answer))
        return answer

    for key in KEYS:
        ask("memory.get", memory_key=key)
        ask("memory.get", memory_key=key, as_of="2026-03-01T12:00:00Z")
        history = ask("memory.history", memory_key=key)
        for version in history.get("versions", []):
            ask("memory.get", memory_key=key, version_text=version["version_text"])
    for args in ({}, {"contains": "mark"}, {"memory_types": ["profile", "semantic"]}, {"order": "newest"}):
        ask("memory.list", bodies="full", limit=3, **args)
    for scope in ("this", "all_mine"):
        for recipe in ("", "verbatim", "temporal"):
            args: dict[str, Any] = {"namespace_scope": scope, "recipe": recipe}
            found = ask("memory.search", all_mine=scope == "all_mine", query="walrus", top_k=2, **args)
            while found.get("next_page"):
                found = ask("memory.next_page", all_mine=scope == "all_mine", page=found["next_page"])
    return answers


def check(rows: list[Written], askers: list[Asker]) -> None:
    clock = Clock()
    with ThreadPoolExecutor(1) as pool:
        core = core_of(memory.OPS, embedding.JOBS, {}, STORES.fresh(clock), clock, pool)
        marks = write(core, rows)
        ids = {one["memory_id"] for one in every(core)}
        for asker in askers:
            for op, all_mine, answer in reads(core, asker):
                text = json.dumps(answer)
                for mark, row in marks.items():
                    assert mark not in text or asker.may_see(row, all_mine=all_mine), (op, row, asker, answer)
            if asker.namespaces is None or asker.namespace in asker.namespaces:
                found = core.call("memory.search", caller=asker.caller, **asker.where, query="walrus", top_k=100)
                shown = {hit["excerpt"].split()[1] for hit in found["results"]}
                assert shown == visible_memories(marks, asker)
            for memory_id in ids:
                answer = history_of(core, asker, memory_id)
                for mark, row in marks.items():
                    assert mark not in answer or asker.may_see(row), (row, asker)


def visible_memories(marks: Mapping[str, Written], asker: Asker) -> set[str]:
    """The marks of live memories that the asker may see: the last mark written to each place."""
    last: dict[tuple[str, ...], str] = {}
    for mark, row in marks.items():
        last[(row.org, row.namespace, row.agent, row.user_id, row.memory_key)] = mark
    return {mark for mark in last.values() if marks[mark].kind != "profile" and asker.may_see(marks[mark])}


def every(core: Core) -> list[dict[str, Any]]:
    """Every row of every org."""
    args: dict[str, Any] = {"memory_types": ["profile", "semantic"], "limit": 500}
    return [
        one
        for org in ORGS
        for space in NAMESPACES
        for one in core.call("memory.list", org=org, namespace=space, **args)["items"]
    ]


def history_of(core: Core, asker: Asker, memory_id: str) -> str:
    try:
        return json.dumps(core.call("memory.history", caller=asker.caller, **asker.where, memory_id=memory_id))
    except LoomError as error:
        return error.message


class Stores:
    """Fresh stores for one example each, in one folder that pytest removes."""

    def __init__(self) -> None:
        self.folder: Any = None
        self.open: SqliteDatabase | None = None
        self.count = 0

    def fresh(self, clock: Clock) -> SqliteDatabase:
        self.close()
        self.count += 1
        chosen = SqliteSettings(synchronous="OFF", clock_ns=clock.nanoseconds)
        self.open = SqliteDatabase(self.folder / str(self.count), from_package("loom"), chosen)
        return self.open

    def close(self) -> None:
        if self.open is not None:
            self.open.close()
        self.open = None


STORES = Stores()


@pytest.fixture(autouse=True, scope="module")
def _stores(tmp_path_factory: pytest.TempPathFactory) -> Any:
    STORES.folder = tmp_path_factory.mktemp("isolation")
    yield
    STORES.close()


@settings(max_examples=8)
@given(st.lists(ROWS, min_size=4, max_size=14), st.lists(ASKERS, min_size=1, max_size=3))
def test_no_read_shows_what_it_may_not(rows: list[Written], askers: list[Asker]) -> None:
    check(rows, askers)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.lists(ROWS, min_size=10, max_size=40), st.lists(ASKERS, min_size=3, max_size=6))
def test_no_read_shows_what_it_may_not_at_length(rows: list[Written], askers: list[Asker]) -> None:
    check(rows, askers)
