"""Whatever a narrow token writes, nothing outside its reach changes: every write there is, at every row there is."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fakes import Core, CoreOf
from loom import federation, system
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import LoomError
from loom.ledger import embedding
from loom.ops.spec import AnyOp, Kind
from loom.planes import memory, profile

OPS: tuple[AnyOp, ...] = (
    *memory.OPS,
    *profile.OPS,
    *system.operations(cargos=(memory.CARGO, profile.CARGO)),
    *federation.ops([memory.LEG, profile.LEG]),
)
WRITES = [op for op in OPS if op.kind is not Kind.READ]
ORGS, SPACES, AGENTS, USERS, SESSIONS = ("ours", "theirs"), ("n1", "n2"), ("a1", "a2"), ("u1", "u2"), ("s1", "s2")
KEY, LABEL = "k", "persona"
ERASED: dict[str, Any] = {"status": "redacted", "has_value": False, "value": None, "content_sha256": "", "tags": []}

pytestmark = pytest.mark.slow

Row = Mapping[str, Any]

TOKENS = {
    "one namespace": Caller("t1", Role.ADMIN, {"org": "ours"}, frozenset({"n1"})),
    "one user": Caller("t2", Role.WRITER, {"org": "ours", "user_id": "u1"}, None, ReadScope.OWN_USER),
    "one session": Caller(
        "t3",
        Role.WRITER,
        {"org": "ours", "user_id": "u1", "session_id": "s1"},
        frozenset({"n1"}),
        ReadScope.OWN_SESSION,
    ),
    "a viewer": Caller("t4", Role.VIEWER, {"org": "ours"}),
    "one org": Caller("t5", Role.ADMIN, {"org": "ours"}),
    "an admin of one user": Caller("t6", Role.ADMIN, {"org": "ours", "user_id": "u1"}),
}


def reaches(caller: Caller, org: str, row: Row) -> bool:
    """Whether the token may change the row."""
    space = row["name"] if row["kind"] == "namespace" else row["namespace"]
    if caller.role < Role.WRITER or org != caller.pins["org"]:
        return False
    if caller.namespaces is not None and space not in caller.namespaces:
        return False
    if row["kind"] != "memory":
        return True
    user_id, session_id = row["user_id"], row["versions"][0]["session_id"]
    return caller.pins.get("user_id", user_id) == user_id and caller.pins.get("session_id", session_id) == session_id


def place(row: Row) -> tuple[str, str, str]:
    """What names a row among those of all orgs."""
    name = {"memory": "memory_id", "namespace": "name", "profile_schema": "version"}[row["kind"]]
    return row["org"], row["kind"], str(row[name])


def rows(core: Core, org: str) -> list[dict[str, Any]]:
    """Every line of the org's export."""
    lines: list[dict[str, Any]] = core.call("store.export", org=org, all_namespaces=True)["lines"]
    return lines


def fill(core: Core, _: Path) -> None:
    """A memory and a section in every place."""
    for org, space, agent, user, session in itertools.product(ORGS, SPACES, AGENTS, USERS, SESSIONS):
        where: dict[str, Any] = {"org": org, "namespace": space, "agent": agent, "user_id": user, "session_id": session}
        core.call("memory.set", memory_key=f"{KEY}-{session}", value=f"secret of {where}", **where)
        core.call("profile.set", label=f"{LABEL}-{session}", value=f"secret of {where}", **where)


@pytest.fixture
def core(core_of: CoreOf, fill_again: Callable[..., None]) -> Core:
    """A store in which every place holds a memory and a section."""
    made = core_of(OPS, embedding.JOBS, {**profile.LATE, **system.LATE})
    fill_again(made, fill)
    return made


def calls(op: AnyOp, there: Row) -> Iterator[dict[str, Any]]:
    """Calls of an operation that aim at one row, with an agent named and without."""
    aimed: dict[str, Any] = {
        "org": there["org"],
        "namespace": there["namespace"],
        "user_id": there["user_id"],
        "session_id": there["versions"][0]["session_id"],
        "memory_key": there["memory_key"],
        "label": there["memory_key"],
        "version_text": there["version_text"],
        "name": there["namespace"],
        "confirm": there["namespace"],
        "old": "secret",
        "new": "changed",
        "items": [{"memory_key": there["memory_key"], "value": "changed"}],
        "lines": [
            {**there, "status": "redacted", "versions": [{**one, **ERASED} for one in there["versions"]]},
            {"kind": "namespace", "name": there["namespace"], "namespace_kind": "code", "description": "changed",
             "created_at": "2026-01-01T00:00:00Z"},
        ],
    }  # fmt: skip
    fields = op.takes.model_fields
    known = {name: value for name, value in aimed.items() if name in fields}
    for agent in (there["agent"], "-"):
        for left_out in (
            (),
            ("user_id", "session_id"),
            ("session_id",),
            ("namespace",),
            ("org", "namespace", "session_id"),
        ):
            named = {name: value for name, value in known.items() if name not in left_out}
            # None stands for "not given": the core would fill in places of its own.
            yield {**op.example, **dict.fromkeys(left_out), **named, "agent": agent}


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("op", WRITES, ids=lambda op: op.name)
def test_no_write_changes_a_row_outside_the_tokens_reach(core: Core, op: AnyOp, token: str) -> None:
    caller = TOKENS[token]
    before = {org: rows(core, org) for org in ORGS}
    outside = [{**line, "org": org} for org in ORGS for line in before[org] if not reaches(caller, org, line)]
    kept = {place(line): line for line in outside}
    aims = [line for line in outside if line["kind"] == "memory"]
    assert aims
    for there in aims:
        for args in calls(op, there):
            try:
                answer = core.call(op.name, caller=caller, **args)
            except LoomError as error:
                answer = error.body()
            assert "secret of" not in json.dumps(answer)
    now = {place({**line, "org": org}): {**line, "org": org} for org in ORGS for line in rows(core, org)}
    assert {where: now.get(where) for where in kept} == kept
