"""Whatever is added where, by whom: a read shows nothing beyond its org, namespace, user, session and token."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import Clock, Core, core_of
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import LoomError
from loom.planes import knowledge
from loom.storage.migrate import from_package
from loom.storage.sqlite import SqliteDatabase, SqliteSettings

ORGS, NAMESPACES, USERS, SESSIONS = ("o1", "o2"), ("n1", "n2"), ("-", "u1", "u2"), ("-", "s1", "s2")
URIS = ("a", "b")


@dataclass(frozen=True)
class Written:
    """One revision, its mark, and whose it is."""

    org: str
    namespace: str
    user_id: str
    session_id: str
    uri: str


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

    def may_see(self, row: Written, *, all_mine: bool) -> bool:
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
    st.sampled_from(USERS),
    st.sampled_from(SESSIONS),
    st.sampled_from(URIS),
)
ASKERS = st.builds(
    Asker,
    st.sampled_from(ORGS),
    st.sampled_from(NAMESPACES),
    st.sampled_from(USERS),
    st.sampled_from(SESSIONS),
    st.sampled_from(list(ReadScope)),
    st.sampled_from(list(ReadScope)),
    st.sampled_from([None, frozenset({"n1"}), frozenset({"n1", "n2"})]),
)


class Stores:
    """A fresh store for each example, in one folder that pytest removes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def fresh(self, clock: Clock) -> SqliteDatabase:
        self.count += 1
        chosen = SqliteSettings(synchronous="OFF", clock_ns=clock.nanoseconds)
        return SqliteDatabase(self.folder / str(self.count), from_package("loom"), chosen)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("isolation"))


def write(core: Core, rows: list[Written]) -> dict[str, Written]:
    """Add each row with a mark that no other has: mark to row."""
    marks: dict[str, Written] = {}
    for number, row in enumerate(rows):
        mark = f"mark{number:03}x"
        core.call(
            "knowledge.add",
            org=row.org,
            namespace=row.namespace,
            user_id=row.user_id,
            session_id=row.session_id,
            uri=row.uri,
            text=f"# {mark}\n\nThe walrus {mark} sleeps.",
            tags=[mark],
        )
        marks[mark] = row
    return marks


def reads(core: Core, asker: Asker) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Every read's answers: whether it reads all of the caller's namespaces, and the answer."""
    caller = Caller("t", Role.ADMIN, {"org": asker.org}, asker.namespaces, asker.ceiling)
    where = {
        "namespace": asker.namespace,
        "user_id": asker.user_id,
        "session_id": asker.session_id,
        "read_scope": asker.scope.word,
    }

    def ask(op: str, **args: Any) -> dict[str, Any]:
        try:
            return core.call(op, caller=caller, **where, **args)
        except LoomError as error:
            return {"error": error.message, **error.extras}

    listed = ask("knowledge.list")
    yield False, listed
    for uri in URIS:
        for revision in range(4):
            yield False, ask("knowledge.get", uri=uri, revision=revision)
        yield False, ask("knowledge.search", query="walrus", uri=uri)
    for scope in ("this", "all_mine"):
        for top_k in (1, 50):
            args = {"namespace_scope": scope, "top_k": top_k}
            yield scope == "all_mine", ask("knowledge.search", query="walrus sleeps", **args)
    with core.database.transaction(asker.org, write=False) as tx:
        ids = [
            int(str(row["document_id"]))
            for row in tx.rows("SELECT document_id FROM knowledge_document WHERE org = :org")
        ]
    for number in ids:
        for revision in range(4):
            yield False, ask("knowledge.get", document_id=f"doc_{number:016x}", revision=revision)


def check(stores: Stores, rows: list[Written], askers: list[Asker]) -> None:
    clock = Clock()
    database = stores.fresh(clock)
    with ThreadPoolExecutor(1) as pool:
        core = core_of(knowledge.OPS, knowledge.JOBS, {}, database, clock, pool)
        marks = write(core, rows)
        for asker in askers:
            for all_mine, answer in reads(core, asker):
                shown = json.dumps(answer)
                for mark, row in marks.items():
                    assert mark not in shown or asker.may_see(row, all_mine=all_mine), (row, asker, answer)
    database.close()


@settings(max_examples=8)
@given(st.lists(ROWS, min_size=4, max_size=12), st.lists(ASKERS, min_size=1, max_size=3))
def test_no_read_shows_what_it_may_not(stores: Stores, rows: list[Written], askers: list[Asker]) -> None:
    check(stores, rows, askers)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.lists(ROWS, min_size=10, max_size=30), st.lists(ASKERS, min_size=3, max_size=6))
def test_no_read_shows_what_it_may_not_at_length(stores: Stores, rows: list[Written], askers: list[Asker]) -> None:
    check(stores, rows, askers)
