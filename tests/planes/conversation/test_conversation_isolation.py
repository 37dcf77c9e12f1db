"""Whatever is said where, by whom: a read shows nothing beyond its org, namespace, user, session and token."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import Clock, Core, core_of
from loom import federation
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import LoomError
from loom.planes import conversation
from loom.storage.migrate import from_package
from loom.storage.sqlite import SqliteDatabase, SqliteSettings

ORGS, NAMESPACES, USERS, SESSIONS = ("o1", "o2"), ("n1", "n2"), ("-", "u1", "u2"), ("s1", "s2")
SCOPES = tuple(ReadScope)

Row = tuple[str, str, str, str]
"""Org, namespace, user and session of a turn."""

ROWS = st.tuples(*map(st.sampled_from, (ORGS, NAMESPACES, USERS, SESSIONS)))


@dataclass(frozen=True)
class Asker:
    """A token, and what a request of it names."""

    where: Row
    ceiling: ReadScope
    asked: ReadScope
    reached: frozenset[str] | None


ASKERS = st.builds(
    Asker,
    ROWS,
    st.sampled_from(SCOPES),
    st.sampled_from(SCOPES),
    st.sampled_from([None, frozenset({"n1"}), frozenset({"n1", "n2"})]),
)


def may_see(row: Row, asker: Asker, *, all_mine: bool) -> bool:
    """The rule, said once more in other words."""
    where, scope, reached = asker.where, min(asker.ceiling, asker.asked), asker.reached
    if row[0] != where[0] or (reached is not None and row[1] not in reached):
        return False
    if row[1] != where[1] and not all_mine:
        return False
    if scope is ReadScope.NAMESPACE or row[2] == "-":
        return True
    return row[2] == where[2] and (scope is ReadScope.OWN_USER or row[3] == where[3])


@settings(max_examples=25)
@given(st.lists(ROWS, min_size=1, max_size=12), st.lists(ASKERS, min_size=1, max_size=4))
def test_no_read_goes_beyond_its_reach(rows: list[Row], askers: list[Asker]) -> None:
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        quick = SqliteSettings(synchronous="OFF", clock_ns=Clock().nanoseconds)
        database = SqliteDatabase(Path(folder) / "store", from_package("loom"), quick)
        ops = [*conversation.OPS, *federation.ops([conversation.LEG])]
        core = core_of(ops, conversation.JOBS, {}, database, Clock(), pool)
        marks: dict[str, Row] = {}
        ids: list[str] = []
        for number, row in enumerate(rows):
            mark = f"mark{number:03}x"
            where = dict(zip(("org", "namespace", "user_id", "session"), row, strict=True))
            core.call("conversation.append", messages=[{"role": "user", "content": f"walrus {mark}"}], **where)
            marks[mark] = row
            turns = core.call("conversation.get", **where)["turns"]
            ids += [turn["turn_id"] for turn in turns]
        for asker in askers:
            check(core, marks, ids, asker)
        database.close()


def check(core: Core, marks: Mapping[str, Row], ids: list[str], asker: Asker) -> None:
    """Every read op, asked by one asker."""
    where, reached = asker.where, asker.reached
    caller = Caller("t", Role.ADMIN, {"org": where[0]}, reached, asker.ceiling)
    names = {"namespace": where[1], "user_id": where[2], "session_id": where[3], "read_scope": asker.asked.word}

    def shown(op: str, **args: Any) -> str:
        try:
            return json.dumps(core.call(op, caller=caller, **names, **args))
        except LoomError as error:
            return error.message

    answers = [(shown("conversation.get", session=one), False) for one in SESSIONS]
    answers += [(shown("conversation.get", turn_id=one), False) for one in ids]
    answers += [(shown("conversation.list"), False), (shown("conversation.search", query="walrus", top_k=100), False)]
    answers += [(shown("conversation.search", query="walrus", session=one, top_k=50), False) for one in SESSIONS]
    answers.append((shown("conversation.search", query="walrus", namespace_scope="all_mine", top_k=100), True))
    answers.append((shown("search.query", query="walrus", top_k=100), True))
    for text, all_mine in answers:
        for mark, row in marks.items():
            assert mark not in text or may_see(row, asker, all_mine=all_mine), (row, asker)
    if reached is None or where[1] in reached:
        visible = {mark for mark, row in marks.items() if may_see(row, asker, all_mine=False)}
        found = shown("conversation.search", query="walrus", top_k=100)
        assert {mark for mark in marks if mark in found} == visible
