"""Calls that are meant to reach further than they may, or to have a memory lost."""

from typing import Any

import pytest
from memory_kit import of_session, refused, sweep

from fakes import ORG, Core
from loom.access.caller import ReadScope
from loom.errors import Denied, KeyReused, NotFound
from loom.ledger.rules import Reader
from loom.planes.memory import listing
from loom.planes.memory.listing import Order

WRITES: dict[str, dict[str, Any]] = {
    "memory.update": {"value": "changed"},
    "memory.delete": {},
    "memory.restore": {},
    "memory.redact": {},
    "memory.touch": {},
    "memory.pin": {},
    "memory.lock": {},
    "memory.delete_version": {"version_text": "9007199254740993"},
}


@pytest.mark.parametrize("op", WRITES)
def test_a_refused_writer_does_not_learn_who_wrote_in_another_session(core: Core, op: str) -> None:
    for agent in ("codex", "claude-code"):
        core.call("memory.set", memory_key="k", value="v", agent=agent, user_id="ann", session_id="theirs")
    caller = of_session("ann", "mine")
    answer = refused(NotFound, core.call, op, caller=caller, memory_key="k", agent="-", **WRITES[op])
    assert "codex" not in str(answer.body())
    refused(Denied, core.call, op, caller=caller, memory_key="k", agent="codex", **WRITES[op])


def test_what_is_pinned_stays_when_its_newest_version_goes(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="for an hour", ttl_seconds=3600)
    kept = core.call("memory.set", memory_key="k", value="for good")
    core.call("memory.pin", memory_key="k")
    after = core.call("memory.delete_version", memory_key="k", version_text=kept["version_text"])
    assert after["expires_at"] is None
    core.clock.step(hours=2)
    sweep(core)
    assert core.call("memory.get", memory_key="k")["value"] == "for an hour"


def test_an_imported_line_cannot_have_a_live_memory_purged(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v")
    lines = core.call("store.export")["lines"]
    for line in lines:
        if line["kind"] == "memory":
            line["ended_at"] = "2020-01-01T00:00:00Z"
    answer = core.call("store.import", org="elsewhere", lines=lines)
    assert [(one["code"], one["reason"][:9]) for one in answer["refused"]] == [("VALIDATION", "ended_at:")]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("order", ["memory_key", "newest"])
def test_no_page_of_a_scan_sorts_or_walks_what_lies_before_it(core: Core, order: Order) -> None:
    core.call("memory.set", memory_key="k", value="v")
    reader = Reader(ReadScope.NAMESPACE, "-", "-")
    wanted = listing.Listing(
        "local",
        reader,
        core.clock(),
        past=False,
        prefix="",
        memory_types=(),
        agents=None,
        statuses=("live",),
        order=order,
        test=None,
        now_us=core.clock(),
    )
    with core.database.transaction(ORG, write=False) as tx:
        place = {"after_key": "a", "after_number": 1}
        steps = tx.rows("EXPLAIN QUERY PLAN " + listing.PAGES[False, order], most=1, **place, **wanted.params())
    plan = [str(step["detail"]) for step in steps]
    assert "USE TEMP B-TREE FOR ORDER BY" not in plan
    assert any(
        step.startswith("SEARCH i USING INDEX") and step.endswith(("memory_key>?)", "version<?)")) for step in plan
    )


def test_an_import_cannot_move_later_versions_into_the_future(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v")
    space, line = core.call("store.export")["lines"]
    ahead = {"version_text": str(int(line["version_text"]) + 3600 * 10**9)}
    late = line | ahead | {"versions": [line["versions"][0] | ahead]}
    answer = core.call("store.import", org="elsewhere", lines=[space, late])
    assert [one["reason"][:13] for one in answer["refused"]] == ["version_text:"]
    written = core.call("memory.set", memory_key="new", value="v", org="elsewhere")
    now = core.clock.now.isoformat()
    assert core.call("memory.get", memory_key="new", org="elsewhere", as_of=now)["version"] == written["version"]


@pytest.mark.parametrize("redacted", [True, False])
def test_an_import_does_not_go_past_a_lock(core: Core, *, redacted: bool) -> None:
    core.call("memory.set", memory_key="k", value="kept", org="elsewhere")
    older = core.call("store.export", org="elsewhere")["lines"]
    core.clock.step(minutes=1)
    core.call("memory.set", memory_key="k", value="newer", org="elsewhere")
    newer = core.call("store.export", org="elsewhere")["lines"]
    core.call("store.import", lines=older)
    core.call("memory.lock", memory_key="k", mode="read_only")
    lines = [erased(line) for line in newer] if redacted else newer
    refusals = core.call("store.import", lines=lines)["refused"]
    assert [one["code"] for one in refusals] == ["LOCKED"]
    assert core.call("memory.get", memory_key="k")["value"] == "kept"


def erased(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a memory as it would be after memory.redact."""
    if line["kind"] != "memory":
        return line
    gone: dict[str, Any] = {"status": "redacted", "has_value": False, "value": None, "content_sha256": "", "tags": []}
    return {**line, "status": "redacted", "versions": [version | gone for version in line["versions"]]}


def test_two_agents_with_one_idempotency_key_are_not_taken_for_one(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="v", agent="codex", key="1")
    again = core.call("memory.set", memory_key="k", value="v", agent="codex", key="1", session_id="-")
    assert again["agent"] == "codex"
    refused(KeyReused, core.call, "memory.set", memory_key="k", value="v", agent="cursor", key="1")
