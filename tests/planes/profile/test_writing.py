"""profile.set, profile.append and profile.replace, through the one call path."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fakes import Core, CoreOf
from loom.access.caller import Caller, ReadScope, Role
from loom.canonical import measured
from loom.errors import (
    Denied,
    KindConflict,
    Locked,
    LoomError,
    NotFound,
    Rejected,
    ShaMismatch,
    TextNotFound,
    TooLong,
)
from loom.ledger import embedding, store, writes
from loom.ledger.rules import Attributes, Item, Place, draft
from loom.planes import profile
from loom.planes.profile import rules

THREADS, ADDITIONS = 8, 50
JOIN_TIMEOUT_S = 60.0

WRITES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("profile.set", {"value": "b"}),
    ("profile.append", {"addition": "b"}),
    ("profile.replace", {"old": "a", "new": "b"}),
)


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(profile.OPS, embedding.JOBS, profile.LATE)


def row_of(core: Core, label: str, agent: str = "claude", user_id: str = "-") -> Item:
    with core.database.transaction("dev", write=False) as tx:
        found = store.exact(tx, Place("local", agent, user_id), label)
    assert found is not None
    return found


def text(core: Core, label: str, agent: str = "claude", user_id: str = "-") -> str:
    return rules.text_of(row_of(core, label, agent, user_id))


def versions(core: Core, label: str) -> int:
    item = row_of(core, label)
    with core.database.transaction("dev", write=False) as tx:
        return len(store.history(tx, item.item_id, 100))


def change(core: Core, label: str, how: Callable[..., object], **values: object) -> None:
    """Do to the row what an operation of the memory plane does."""
    item = row_of(core, label)
    with core.database.transaction("dev", write=True) as tx:
        how(tx, item, **values)


def side_by_side(work: Callable[[int], object]) -> list[object]:
    """Run `work` in eight threads that begin together; each one's result or LoomError."""
    barrier = threading.Barrier(THREADS)
    results: list[object] = [None] * THREADS

    def run(number: int) -> None:
        barrier.wait(JOIN_TIMEOUT_S)
        try:
            results[number] = work(number)
        except LoomError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(JOIN_TIMEOUT_S)
        assert not thread.is_alive()
    return results


def test_set_answers_the_fields_of_the_contract(core: Core) -> None:
    value = 'likes "tea" ☕'
    answer = core.call("profile.set", label="persona", value=value, session_id="s-1", colour="x")
    wanted = measured(value)
    assert answer["content_sha256"] == wanted.sha256
    assert answer["value_length"] == wanted.length == len(json.dumps(value, ensure_ascii=False))
    assert (answer["char_limit"], answer["label"], answer["namespace"]) == (8192, "persona", "local")
    assert answer["version"] > 2**53
    assert answer["memory_id"].startswith("mem_")
    assert answer["ignored_args"] == ["colour"]
    assert "degraded" not in answer
    assert row_of(core, "persona").head.session_id == "s-1"


def test_a_section_belongs_to_its_agent_and_user(core: Core) -> None:
    core.call("profile.set", label="goals", value="mine")
    core.call("profile.set", label="goals", value="theirs", agent="codex", user_id="ada")
    assert text(core, "goals") == "mine"
    assert text(core, "goals", "codex", "ada") == "theirs"


def test_set_again_replaces_text_and_cap(core: Core) -> None:
    first = core.call("profile.set", label="persona", value="a" * 50, char_limit=60)
    second = core.call("profile.set", label="persona", value="b")
    assert second["memory_id"] == first["memory_id"]
    assert second["version"] > first["version"]
    assert second["char_limit"] == 8192


def test_a_value_may_be_exactly_as_long_as_the_cap(core: Core) -> None:
    assert core.call("profile.set", label="x", value='"\n\u00e9', char_limit=7)["value_length"] == 7
    with pytest.raises(TooLong) as raised:
        core.call("profile.set", label="x", value='"\n\u00e9!', char_limit=7)
    assert raised.value.extras == {"field": "value", "value_length": 8, "char_limit": 7}
    assert text(core, "x") == '"\n\u00e9'


def test_a_set_that_changes_nothing_writes_no_version(core: Core) -> None:
    first = core.call("profile.set", label="x", value="y", source_trace="chat 7")
    for trace in ("", "chat 7"):
        assert core.call("profile.set", label="x", value="y", source_trace=trace) == first
    assert versions(core, "x") == 1
    assert core.call("profile.set", label="x", value="y", source_trace="chat 8")["version"] > first["version"]
    assert core.call("profile.set", label="x", value="y", char_limit=100)["char_limit"] == 100
    assert versions(core, "x") == 3


def test_set_only_over_the_hash_that_was_read(core: Core) -> None:
    with pytest.raises(ShaMismatch) as missing:
        core.call("profile.set", label="x", value="y", if_match_sha256="0" * 64)
    assert missing.value.extras["current_sha256"] == ""
    first = core.call("profile.set", label="x", value="y")
    core.call("profile.set", label="x", value="z", if_match_sha256=first["content_sha256"].upper())
    with pytest.raises(ShaMismatch) as stale:
        core.call("profile.set", label="x", value="late", if_match_sha256=first["content_sha256"])
    assert stale.value.extras["current_sha256"] == measured("z").sha256
    assert text(core, "x") == "z"


def test_of_many_sets_over_one_hash_exactly_one_wins(core: Core) -> None:
    seen = core.call("profile.set", label="x", value="start")["content_sha256"]
    results = side_by_side(
        lambda number: core.call("profile.set", label="x", value=f"by {number}", if_match_sha256=seen)
    )
    assert sum(isinstance(result, dict) for result in results) == 1
    assert sum(isinstance(result, ShaMismatch) for result in results) == THREADS - 1
    assert versions(core, "x") == 2


def test_a_trace_that_marks_deleted_versions_is_refused(core: Core) -> None:
    with pytest.raises(Rejected) as raised:
        core.call("profile.set", label="x", value="y", source_trace="memory.delete_version:7")
    assert raised.value.extras["field"] == "source_trace"


@pytest.mark.parametrize(
    ("op", "args", "field"),
    [
        ("profile.set", {"value": "y"}, "label"),
        ("profile.set", {"label": "", "value": "y"}, "label"),
        ("profile.set", {"label": "x" * 513, "value": "y"}, "label"),
        ("profile.set", {"label": "x"}, "value"),
        ("profile.set", {"label": "x", "value": 7}, "value"),
        ("profile.set", {"label": "x", "value": "y", "char_limit": 0}, "char_limit"),
        ("profile.set", {"label": "x", "value": "y", "char_limit": "9"}, "char_limit"),
        ("profile.set", {"label": "x", "value": "y", "if_match_sha256": "0" * 65}, "if_match_sha256"),
        ("profile.set", {"label": "x", "value": "y", "agent": "*"}, "agent"),
        ("profile.append", {"label": "x"}, "addition"),
        ("profile.append", {"label": "x", "addition": "y", "separator": 1}, "separator"),
        ("profile.replace", {"label": "x", "old": "", "new": "y"}, "old"),
        ("profile.replace", {"label": "x", "old": "y"}, "new"),
    ],
)
def test_bad_input_names_its_field(core: Core, op: str, args: dict[str, Any], field: str) -> None:
    with pytest.raises(Rejected) as raised:
        core.call(op, **args)
    assert raised.value.extras["field"] == field
    assert raised.value.message.startswith(field)


def test_append_makes_a_section_without_the_separator(core: Core) -> None:
    answer = core.call("profile.append", label="x", addition="one")
    assert (text(core, "x"), answer["char_limit"]) == ("one", 8192)
    core.call("profile.append", label="x", addition="two")
    core.call("profile.append", label="x", addition="three", separator=" / ")
    assert text(core, "x") == "one\ntwo / three"


def test_append_keeps_cap_trace_and_tags(core: Core) -> None:
    core.call("profile.set", label="x", value="a", char_limit=20, source_trace="chat")
    answer = core.call("profile.append", label="x", addition="b")
    assert answer["char_limit"] == 20
    assert row_of(core, "x").head.attributes.source_trace == "chat"
    with pytest.raises(TooLong) as raised:
        core.call("profile.append", label="x", addition="c" * 16)
    assert raised.value.extras == {"field": "addition", "value_length": 24, "char_limit": 20}
    assert text(core, "x") == "a\nb"


def test_append_after_an_end_begins_anew(core: Core) -> None:
    core.call("profile.set", label="gone", value="old", char_limit=20)
    change(core, "gone", writes.tombstone, source_trace="")
    core.call("profile.set", label="late", value="old", char_limit=20)
    change(core, "late", writes.set_expiry, expires_at=core.clock())
    core.call("profile.set", label="secret", value="old", char_limit=20)
    change(core, "secret", writes.redact)
    for label in ("gone", "late", "secret"):
        assert core.call("profile.append", label=label, addition="new")["char_limit"] == 8192
        assert text(core, label) == "new"


def test_append_keeps_the_time_a_section_ends(core: Core) -> None:
    core.call("profile.set", label="x", value="a")
    ends = core.clock() + 1_000_000
    change(core, "x", writes.set_expiry, expires_at=ends)
    core.call("profile.append", label="x", addition="b")
    assert row_of(core, "x").expires_at == ends


def test_appends_at_once_lose_nothing(core: Core) -> None:
    def work(number: int) -> None:
        for turn in range(ADDITIONS):
            core.call("profile.append", label="log", addition=f"<{number}.{turn}>", agent="shared")

    assert side_by_side(work) == [None] * THREADS
    lines = text(core, "log", "shared").split("\n")
    assert len(lines) == THREADS * ADDITIONS
    for number in range(THREADS):
        assert [line for line in lines if line.startswith(f"<{number}.")] == [
            f"<{number}.{turn}>" for turn in range(ADDITIONS)
        ]


def test_replace_changes_each_occurrence_from_the_left(core: Core) -> None:
    core.call("profile.set", label="x", value="aaaaa b", char_limit=40, source_trace="chat")
    answer = core.call("profile.replace", label="x", old="aa", new="c")
    assert (text(core, "x"), answer["char_limit"]) == ("cca b", 40)
    core.call("profile.replace", label="x", old="c", new="")
    assert text(core, "x") == "a b"
    assert row_of(core, "x").head.attributes.source_trace == "chat"


def test_replace_with_the_same_text_writes_no_version(core: Core) -> None:
    first = core.call("profile.set", label="x", value="tea")
    assert core.call("profile.replace", label="x", old="e", new="e")["version"] == first["version"]


def test_replace_names_what_is_missing(core: Core) -> None:
    with pytest.raises(NotFound) as missing:
        core.call("profile.replace", label="x", old="a", new="b")
    assert missing.value.extras["field"] == "label"
    core.call("profile.set", label="x", value="a")
    with pytest.raises(TextNotFound) as absent:
        core.call("profile.replace", label="x", old="A", new="b")
    assert absent.value.extras["field"] == "old"
    change(core, "x", writes.tombstone, source_trace="")
    with pytest.raises(NotFound):
        core.call("profile.replace", label="x", old="a", new="b")


def test_replace_tells_whose_the_section_is(core: Core) -> None:
    core.call("profile.set", label="x", value="a", agent="codex")
    with pytest.raises(NotFound) as missing:
        core.call("profile.replace", label="x", old="a", new="b", agent="cursor")
    assert missing.value.extras["writers"] == ["codex"]


def test_replace_measures_before_it_makes_a_huge_text(core: Core) -> None:
    core.call("profile.set", label="x", value="a" * 8000)
    with pytest.raises(TooLong) as raised:
        core.call("profile.replace", label="x", old="a", new='"' * 1_000_000)
    assert raised.value.extras["value_length"] == 8000 * 2_000_000 + 2


def test_a_locked_section_is_not_written(core: Core) -> None:
    core.call("profile.set", label="x", value="a")
    change(core, "x", writes.set_guards, pinned=False, lock_mode="read_only", lock_reason="")
    for op, args in WRITES:
        with pytest.raises(Locked):
            core.call(op, label="x", **args)
    change(core, "x", writes.set_guards, pinned=False, lock_mode="no_delete", lock_reason="")
    core.call("profile.append", label="x", addition="b")
    assert row_of(core, "x").lock_mode == "no_delete"


def test_a_memory_of_the_same_key_is_not_overwritten(core: Core) -> None:
    with core.database.transaction("dev", write=True) as tx:
        writes.write(tx, None, (Place("local", "claude", "-"), "x"), draft({"a": 1}, Attributes()))
    for op, args in WRITES:
        with pytest.raises(KindConflict):
            core.call(op, label="x", **args)


def test_another_session_out_of_reach_is_not_overwritten(core: Core) -> None:
    caller = Caller("tok", Role.WRITER, {"org": "dev", "user_id": "ada"}, None, ReadScope.OWN_SESSION)
    core.call("profile.set", caller=caller, label="x", value="a", session_id="one")
    with pytest.raises(Denied):
        core.call("profile.append", caller=caller, label="x", addition="b", session_id="two")
    core.call("profile.append", caller=caller, label="x", addition="b", session_id="one")


def test_writing_needs_the_writer_role(core: Core) -> None:
    with pytest.raises(Denied):
        core.call("profile.set", caller=Caller("tok", Role.VIEWER, {"org": "dev"}), label="x", value="a")


def test_a_set_without_an_embedder_is_kept_and_says_so(core: Core) -> None:
    core.embedder.off.set()
    assert core.call("profile.set", label="x", value="a")["degraded"] == ["embedder"]
    core.embedder.off.clear()
    assert core.drain() == 1
    core.call("profile.set", label="y", value="a")
    assert core.drain() == 0
    core.call("profile.append", label="y", addition="b")
    assert core.drain() == 1


def test_a_replayed_append_is_answered_twice_and_done_once(core: Core) -> None:
    first = core.call("profile.append", key="k", label="x", addition="a")
    assert core.call("profile.append", key="k", label="x", addition="a") == first
    assert text(core, "x") == "a"


@pytest.mark.parametrize("label", ["日本語", "a b/c", "\u202eabc", "line\nbreak", "<b>", "🫖" * 512, "e\u0301"])
def test_any_unicode_is_a_label_and_a_text(core: Core, label: str) -> None:
    core.call("profile.set", label=label, value=label)
    core.call("profile.append", label=label, addition="\U0010ffff")
    assert text(core, label) == label + "\n\U0010ffff"


def test_no_section_grows_beyond_what_can_be_held(core: Core) -> None:
    core.call("profile.set", label="x", value="a" * 1000, char_limit=2**31 - 1)
    longer: list[tuple[str, dict[str, Any]]] = [
        ("profile.replace", {"old": "a", "new": "b" * 8_000}),
        ("profile.append", {"addition": "b" * 8_000_000}),
    ]
    for op, fields in longer:
        with pytest.raises(TooLong) as caught:
            core.call(op, label="x", **fields)
        assert caught.value.extras["char_limit"] == rules.TEXT_LENGTH_MAX
