"""What is promised of the memory verbs and of the profile, where no test of a plane says it."""

import hashlib
import json
import re
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pytest

from fakes import Core
from loom.access.caller import LOCAL, Caller, Role, Transport
from loom.canonical import Json
from loom.errors import Rejected, ShaMismatch
from loom.ops.spec import AnyOp

VALUES: list[Json] = ['likes "tea" 茶 😀 </section>\n# h', "", "\u2028 é e\u0301", "\\ \x01 \t"]


def sha(value: Json) -> str:
    """The hash as a client computes it: sorted keys, no spaces, non-ASCII kept, UTF-8."""
    return hashlib.sha256(text_of(value).encode()).hexdigest()


def text_of(value: Json) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("value", VALUES)
def test_one_hash_and_length_over_every_operation(core: Core, value: str) -> None:
    wanted = (sha(value), len(text_of(value)))
    written = core.call("profile.set", label="s", value=value + "XX")
    replaced = core.call("profile.replace", label="s", old="XX", new="")
    appended = core.call("profile.append", label="t", addition=value)
    again = core.call("profile.set", label="s", value=value)
    got = core.call("memory.get", memory_key="s")
    listed = core.call("memory.list", memory_types=["profile"], bodies="full")["items"]
    history = core.call("memory.history", memory_key="s")["versions"]
    for answer in (replaced, appended, again, got, *listed, history[0]):
        assert (answer["content_sha256"], answer["value_length"]) == wanted
    assert history[1]["content_sha256"] == written["content_sha256"] == sha(value + "XX")
    exported = json.dumps(core.call("store.export"))
    assert wanted[0] in exported
    assert core.call("memory.set", memory_key="m", value={"z": value, "a": [1, 2.5, None]})["content_sha256"] == sha(
        {"a": [1, 2.5, None], "z": value}
    )


def test_versions_rise_and_are_above_what_a_float_holds(core: Core) -> None:
    answers = [core.call("profile.append", label="s", addition="x") for _ in range(5)]
    answers += [core.call("memory.set", memory_key=f"k{number}", value=number) for number in range(5)]
    versions = [answer["version"] for answer in answers]
    assert versions == sorted(set(versions))
    assert versions[0] > 2**53


def test_a_caller_that_has_the_version_is_sent_no_value(core: Core) -> None:
    version = core.call("memory.set", memory_key="k", value="tea")["version_text"]
    known = core.call("memory.get", memory_key="k", if_version=version)
    assert (known["found"], known["unchanged"], known["value"]) == (True, True, None)
    assert (known["version_text"], known["content_sha256"]) == (version, sha("tea"))
    core.call("memory.set", memory_key="k", value="coffee")
    changed = core.call("memory.get", memory_key="k", if_version=version)
    assert (changed["unchanged"], changed["value"]) == (False, "coffee")
    plain = core.call("memory.get", memory_key="k", if_version="")
    assert (plain["unchanged"], plain["value"]) == (False, "coffee")
    assert not core.call("memory.get", memory_key="none", if_version=version)["found"]
    for wrong in ("abc", "-1", "9" * 19):
        with pytest.raises(Rejected, match="if_version"):
            core.call("memory.get", memory_key="k", if_version=wrong)


def times_in(answer: dict[str, Any]) -> list[str]:
    """Every text of an answer that stands under a name of a time."""
    return re.findall(r'"[a-z_]*(?:_at|_to|_until)": "([^"]*)"', json.dumps(answer))


def test_times_are_utc_with_z_and_a_time_without_zone_is_refused(core: Core) -> None:
    core.call("memory.set", memory_key="k", value=1, valid_at="2026-01-01T02:00:00+02:00", ttl_seconds=60)
    assert core.call("memory.get", memory_key="k")["valid_at"] == "2026-01-01T00:00:00Z"
    core.call("profile.render")
    answers = [
        core.call("memory.get", memory_key="k"),
        core.call("memory.list"),
        core.call("memory.history", memory_key="k"),
        core.call("memory.search", query="k"),
        core.call("profile.activity"),
        core.call("memory.delete", memory_key="k"),
    ]
    for answer in answers:
        found = times_in(answer)
        assert found
        assert all(time.endswith("Z") for time in found)
    naive = "2026-01-01T00:00:00"
    for name in ("valid_at", "valid_to"):
        field: dict[str, Any] = {name: naive}
        with pytest.raises(Rejected, match=name):
            core.call("memory.set", memory_key="k", value=1, **field)
    with pytest.raises(Rejected, match="as_of"):
        core.call("memory.get", memory_key="k", as_of=naive)


def test_the_cap_belongs_to_the_set_that_wrote_it(core: Core) -> None:
    assert core.call("profile.set", label="s", value="x", char_limit=50)["char_limit"] == 50
    assert core.call("profile.append", label="s", addition="y")["char_limit"] == 50
    assert core.call("profile.replace", label="s", old="y", new="z")["char_limit"] == 50
    assert core.call("profile.set", label="s", value="x")["char_limit"] == 8192
    assert core.call("profile.set", label="s", value="x", char_limit=None)["char_limit"] == 8192


def test_a_hash_asked_of_a_missing_section_is_a_mismatch_with_an_empty_current_one(core: Core) -> None:
    with pytest.raises(ShaMismatch) as caught:
        core.call("profile.set", label="s", value="x", if_match_sha256="0" * 64)
    assert caught.value.extras["current_sha256"] == ""
    assert not core.call("memory.get", memory_key="s")["found"]


def test_structured_without_a_schema_says_so_and_nothing_else(core: Core) -> None:
    assert core.call("profile.structured", user_id="ann") == {
        "status": "no_schema",
        "profile": {},
        "built_at": None,
        "memory_id": "",
        "version": 0,
        "version_text": "0",
        "schema_sha256": "",
    }


def test_three_operations_are_profile_reads_and_a_search_without_sections_is_none(core: Core) -> None:
    core.call("profile.set", label="drinks", value="tea")
    core.call("profile.render", agent="one")
    core.call("profile.structured", agent="two")
    core.call("search.query", agent="three", query="tea")
    core.call("search.query", agent="four", query="zzz")
    core.dispatcher.call("profile.render", LOCAL, Transport(unnoticed=True), {"agent": "dashboard"})
    entries = core.call("profile.activity")["entries"]
    assert {(entry["agent"], entry["last_op"], entry["read_count"]) for entry in entries} == {
        ("one", "profile.render", 1),
        ("two", "profile.structured", 1),
        ("three", "search.query", 1),
    }
    assert all(set(entry) == {"agent", "last_read_at", "read_count", "last_op"} for entry in entries)


def defaults_of(op: AnyOp, args: Collection[str], *, as_null: bool) -> dict[str, Any]:
    """Every optional field that is not in `args`, with its default or null."""
    fields = {name: field for name, field in op.takes.model_fields.items() if name not in args}
    return {
        name: None if as_null else field.get_default(call_default_factory=True, validated_data={})
        for name, field in fields.items()
        if not field.is_required()
    }


def answered(core: Core, op: AnyOp, org: str, more: Callable[[Collection[str]], dict[str, Any]]) -> str:
    """The answer to the op's example in an org of its own, with what no two calls share left out."""
    caller = Caller(org, Role.ADMIN, {"org": org})
    own: dict[str, Any] = {"namespace": "n", "agent": "a"}
    known = core.call("memory.set", caller=caller, **own, memory_key="project/database", value="tea")
    if op.name == "memory.restore":
        core.call("memory.delete", caller=caller, **own, memory_key="project/database")
    args: dict[str, Any] = own | dict(op.example)
    if "version_text" in op.example:
        args["version_text"] = known["version_text"]
    answer = core.call(op.name, caller=caller, **args, **more({*args, "org"}))
    return re.sub(r"mem_[0-9a-f]{16}|[0-9]{16,}", "", json.dumps(answer)).replace(org, "the caller")


def test_a_default_sent_is_a_default_left_out(core: Core) -> None:
    for op in core.dispatcher.registry:
        if op.name in ("profile.replace", "profile.schema_delete", "memory.set_from_messages"):
            continue  # their examples need a section, a schema and a language model
        left_out = answered(core, op, f"{op.name} left", lambda _: {})
        for as_null in (False, True):
            sent = answered(core, op, f"{op.name} {as_null}", partial(defaults_of, op, as_null=as_null))
            assert sent == left_out, op.name
