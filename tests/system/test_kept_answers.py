"""What is kept to answer a repeated write repeats nothing of what was deleted."""

from collections.abc import Callable
from typing import Any

import pytest

from fakes import Core, CoreOf
from loom import compose

SECRET = "plumbago"
TRACE = f"Traceback (most recent call last):\n  File \"{SECRET}.py\", line 3, in {SECRET}\nKeyError: 'x'"

WRITES: dict[str, dict[str, Any]] = {
    "memory.set": {"memory_key": "k", "value": SECRET},
    "memory.set_many": {"items": [{"memory_key": "k", "value": SECRET}]},
    "profile.set": {"label": "k", "value": SECRET},
    "profile.append": {"label": "k", "addition": SECRET},
    "knowledge.add": {"uri": "k", "text": f"# {SECRET}\n\n{SECRET}", "tags": [SECRET]},
    "conversation.append": {"session": "k", "messages": [{"role": "user", "content": SECRET}]},
    "tracker.add": {"number": 1, "title": SECRET, "body": TRACE},
    "tracker.import": {"items": [{"number": 1, "title": SECRET, "body": TRACE}]},
    "namespace.create": {"name": "gone", "kind": "memory", "description": SECRET},
}

DELETES: dict[str, dict[str, Any]] = {
    "memory": {"op": "memory.redact", "memory_key": "k"},
    "knowledge": {"op": "knowledge.delete", "uri": "k"},
    "conversation": {"op": "conversation.delete", "session": "k", "whole_session": True},
    "tracker": {"op": "tracker.delete", "number": 1},
}


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(list(compose.registry()), {}, {})


def kept(core: Core) -> str:
    with core.database.transaction("dev", write=False) as tx:
        rows = tx.rows("SELECT answer FROM idempotency WHERE org = :org")
    return "".join(str(row["answer"]) for row in rows).casefold()


@pytest.mark.parametrize("way", ["memory.redact", "namespace.delete"])
def test_why_a_memory_was_locked_goes_with_it(core: Core, way: str) -> None:
    about: dict[str, Any] = {"namespace": "gone", "memory_key": "k"}
    core.call("memory.set", value="v", **about)
    core.call("memory.lock", key="lock", mode="no_delete", reason=SECRET, **about)
    core.call("memory.pin", key="pin", pinned=False, **about)
    core.call("memory.lock", mode="", **about)
    assert SECRET in kept(core)
    args: dict[str, Any] = about if way == "memory.redact" else {"name": "gone", "confirm": "gone"}
    core.call(way, **args)
    assert SECRET not in kept(core)


def delete(core: Core, op: str) -> None:
    args = dict(DELETES[op.partition(".")[0]])
    core.call(args.pop("op"), namespace="gone", **args)


def delete_namespace(core: Core, op: str) -> None:
    del op
    core.call("namespace.delete", name="gone", confirm="gone")


EACH = [(op, delete_namespace) for op in WRITES] + [(op, delete) for op in WRITES if op.partition(".")[0] in DELETES]


@pytest.mark.parametrize(("op", "way"), EACH)
def test_a_kept_answer_repeats_nothing_that_was_deleted(core: Core, op: str, way: Callable[[Core, str], None]) -> None:
    first = core.call(op, key="once", namespace="gone", **WRITES[op])
    assert core.call(op, key="once", namespace="gone", **WRITES[op]) == first
    way(core, op)
    assert SECRET not in kept(core)
