import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.access.caller import ReadScope, Role
from loom.canonical import Json, encoded
from loom.errors import Denied, KindConflict, Locked, PinnedConflict, Rejected, ShaMismatch, TooLong
from loom.ledger import rules
from loom.ledger.rules import Attributes, Item, Place, Reader, Version

SECTION = Attributes(memory_type=rules.PROFILE, char_limit=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def item(value: Json = "v", attributes: Attributes | None = None) -> Item:
    made = rules.draft(value, attributes or Attributes())
    head = Version(
        5, rules.LIVE, "s", "r", made.measured.text, made.measured.sha256, made.measured.length, made.attributes, 0
    )
    return Item(3, Place("n", "a", "u"), "k", head, rules.LIVE, None, None, False, "", "")


@given(JSON)
def test_the_cap_is_on_the_canonical_encoding(value: Json) -> None:
    length = len(encoded(value))
    assert rules.draft(value, Attributes(char_limit=length)).measured.length == length
    with pytest.raises(TooLong) as caught:
        rules.draft(value, Attributes(char_limit=length - 1))
    assert caught.value.extras == {"field": "value", "value_length": length, "char_limit": length - 1}


def test_a_section_is_a_text() -> None:
    assert rules.draft("text", SECTION).measured.length == 6
    wrong: list[Json] = [1, None, ["text"], {"a": 1}]
    for value in wrong:
        with pytest.raises(Rejected):
            rules.draft(value, SECTION)


def test_a_reserved_trace_is_refused() -> None:
    with pytest.raises(Rejected):
        rules.draft("v", Attributes(source_trace="memory.delete_version:5"))
    assert rules.draft("v", Attributes(source_trace="memory.delete"))


def test_match() -> None:
    live = item()
    rules.check_match(None, "", 0)
    rules.check_match(live, "", 0)
    rules.check_match(live, live.head.content_sha256.upper(), 0)
    expired = replace(live, expires_at=10)
    rules.check_match(expired, live.head.content_sha256, 9)
    for current, moment, now in (
        (None, 0, ""),
        (expired, 10, ""),
        (replace(live, status=rules.TOMBSTONED), 0, ""),
        (item("other"), 0, item("other").head.content_sha256),
    ):
        with pytest.raises(ShaMismatch) as caught:
            rules.check_match(current, live.head.content_sha256, moment)
        assert caught.value.extras["current_sha256"] == now


def test_guards() -> None:
    live = item()
    rules.check_writable(None)
    rules.check_writable(replace(live, lock_mode=rules.NO_DELETE, pinned=True))
    rules.check_deletable(live)
    with pytest.raises(Locked):
        rules.check_writable(replace(live, lock_mode=rules.READ_ONLY))
    with pytest.raises(Locked):
        rules.check_deletable(replace(live, lock_mode=rules.NO_DELETE))
    with pytest.raises(PinnedConflict):
        rules.check_deletable(replace(live, pinned=True))


def test_only_an_admin_loosens() -> None:
    modes = (rules.UNLOCKED, rules.NO_DELETE, rules.READ_ONLY)
    for before, after in itertools.product(range(3), range(3)):
        locked = replace(item(), lock_mode=modes[before])
        rules.check_lock_change(locked, modes[after], Role.ADMIN)
        if after >= before:
            rules.check_lock_change(locked, modes[after], Role.WRITER)
        else:
            with pytest.raises(Locked):
                rules.check_lock_change(locked, modes[after], Role.WRITER)


def test_kinds_are_kept_apart_while_they_live() -> None:
    memory, section = item(), item("text", SECTION)
    rules.check_kind(None, 0, section=True)
    rules.check_kind(memory, 0, section=False)
    rules.check_kind(section, 0, section=True)
    rules.check_kind(replace(section, status=rules.TOMBSTONED), 0, section=False)
    rules.check_kind(replace(section, expires_at=5), 5, section=False)
    for one, wanted in ((memory, True), (section, False)):
        with pytest.raises(KindConflict):
            rules.check_kind(one, 0, section=wanted)


@given(
    st.sampled_from(["-", "u", "w"]),
    st.sampled_from(["-", "s", "t"]),
    st.sampled_from(list(ReadScope)),
    st.sampled_from(["-", "u", "w"]),
    st.sampled_from(["-", "s", "t"]),
)
def test_a_narrower_scope_sees_no_more(user: str, session: str, scope: ReadScope, reader: str, its: str) -> None:
    seen = rules.visible(user, session, Reader(scope, reader, its))
    assert seen or user != "-"
    for wider in ReadScope:
        if wider > scope and seen:
            assert rules.visible(user, session, Reader(wider, reader, its))
    if seen and scope is ReadScope.OWN_SESSION and user != "-":
        assert (user, session) == (reader, its)


def test_reach() -> None:
    row = item()
    rules.check_reach(None, Reader(ReadScope.OWN_SESSION, "w", "t"))
    rules.check_reach(row, Reader(ReadScope.OWN_SESSION, "u", "s"))
    for reader in (Reader(ReadScope.OWN_USER, "w", "s"), Reader(ReadScope.OWN_SESSION, "u", "t")):
        with pytest.raises(Denied):
            rules.check_reach(row, reader)


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_an_id_comes_back(number: int) -> None:
    assert rules.item_id_of(rules.memory_id_of(number)) == number


@given(st.text(max_size=24))
def test_any_text_as_id_is_read_or_not(text: str) -> None:
    number = rules.item_id_of(text)
    assert number is None or rules.memory_id_of(number) == text


@pytest.mark.parametrize(
    "bad", ["", "mem_", "mem_1", "mem_ffffffffffffffff", "mem_000000000000000G", "MEM_" + "0" * 16]
)
def test_what_is_no_id(bad: str) -> None:
    assert rules.item_id_of(bad) is None
