import copy
import json
from typing import Any

import pytest
from memory_kit import ADMIN, found, of_user, refused

from fakes import ORG, Core
from loom.access.caller import Caller, Role
from loom.errors import Denied, Rejected

OTHER = "other-org"
"""Another org has a store of its own, so that an import into it is one into an empty store."""


def fill(core: Core) -> None:
    for number in range(3):
        core.call("memory.set", memory_key="k", value={"ü": number}, tags=["t"], session_id=f"s{number}", run_id="r")
    core.call("memory.lock", memory_key="k", mode="no_delete", reason="why")
    core.call("memory.set", memory_key="gone", value="deleted text")
    core.call("memory.delete", memory_key="gone", source_trace="cleaning")
    core.call("memory.set", memory_key="black", value="plumbago")
    core.call("memory.redact", memory_key="black")
    core.call("memory.set", memory_key="late", value="v", ttl_seconds=600, user_id="ann", agent="codex")
    core.call("memory.set", memory_key="persona", value="brief", memory_type="profile", char_limit=50)
    core.call(
        "memory.set", memory_key="high", value="secret", sensitivity="high", valid_at="2026-01-01T00:00:00.000001Z"
    )
    two = core.call("memory.set", memory_key="two", value="first")
    core.call("memory.set", memory_key="two", value=None)
    core.call("memory.delete_version", memory_key="two", version_text=two["version_text"])
    core.call("memory.set", memory_key="far", value="away", namespace="second", valid_to="2027-01-01T00:00:00Z")
    core.call("memory.pin", memory_key="far", namespace="second")


def exported(core: Core, org: str = ORG, limit: int = 500) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    cursor = ""
    while True:
        answer = core.call("store.export", org=org, all_namespaces=True, limit=limit, cursor=cursor)
        assert len(answer["lines"]) <= limit
        lines += answer["lines"]
        cursor = answer["next_cursor"]
        if not cursor:
            return lines


def imported(core: Core, lines: list[dict[str, Any]], org: str = OTHER) -> dict[str, Any]:
    # Through text, as a file would carry them.
    return core.call("store.import", org=org, lines=json.loads(json.dumps(lines)))


def test_what_is_exported_comes_back_the_same(core: Core) -> None:
    fill(core)
    lines = exported(core)
    answer = imported(core, lines)
    assert (answer["imported"], answer["unchanged"], answer["refused"]) == (len(lines), 0, [])
    assert exported(core, OTHER) == lines
    assert imported(core, lines) == {"imported": 0, "unchanged": len(lines), "refused": []}
    for key, space in (("k", "local"), ("gone", "local"), ("black", "local"), ("two", "local"), ("far", "second")):
        here = core.call("memory.history", memory_key=key, namespace=space)
        there = core.call("memory.history", memory_key=key, org=OTHER, namespace=space)
        assert here == there
    got = core.call("memory.get", memory_key="k", org=OTHER)
    assert (got["value"], got["lock_mode"], got["lock_reason"]) == ({"ü": 2}, "no_delete", "why")
    assert core.call("memory.restore", memory_key="gone", org=OTHER)["status"] == "live"
    core.drain(OTHER)
    assert found(core, "deleted text", org=OTHER)[0] == "gone"
    assert found(core, "away", org=OTHER, namespace="second") == ["far"]
    assert "plumbago" not in json.dumps(exported(core, OTHER))
    assert "high" not in found(core, "secret", org=OTHER)


def test_later_stamps_are_above_imported_ones(core: Core) -> None:
    core.clock.step(minutes=9)
    made = core.call("memory.set", memory_key="k", value=1)
    lines = exported(core)
    core.clock.step(minutes=-8)
    imported(core, lines)
    assert core.call("memory.set", memory_key="new", value=1, org=OTHER)["version"] > made["version"]


def test_small_pages_give_the_same_lines(core: Core) -> None:
    fill(core)
    assert exported(core, limit=1) == exported(core, limit=2) == exported(core)


def test_a_long_history_takes_several_lines(core: Core) -> None:
    for number in range(250):
        core.call("memory.set", memory_key="k", value=number)
    core.call("memory.set", memory_key="l", value="after")
    lines = exported(core)
    assert [len(line["versions"]) for line in lines if line["kind"] == "memory"] == [100, 100, 51 - 1, 1]
    assert exported(core, limit=1) == lines
    imported(core, lines[:2])
    assert core.call("memory.get", memory_key="k", org=OTHER)["value"] == 249
    imported(core, lines)
    assert exported(core, OTHER) == lines
    late = imported(core, [lines[2]], "third-org")
    assert late["refused"][0]["reason"].startswith("versions: the latest one is not here")


def test_an_older_export_changes_nothing_newer(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="old")
    lines = exported(core)
    imported(core, lines)
    core.call("memory.set", memory_key="k", value="newer", org=OTHER)
    assert imported(core, lines)["imported"] == 0
    assert core.call("memory.get", memory_key="k", org=OTHER)["value"] == "newer"
    core.clock.step(minutes=1)
    core.call("memory.set", memory_key="k", value="newest")
    assert imported(core, exported(core))["imported"] == 2
    assert core.call("memory.get", memory_key="k", org=OTHER)["value"] == "newest"
    statuses = [one["status"] for one in core.call("memory.history", memory_key="k", org=OTHER)["versions"]]
    assert statuses == ["live", "superseded", "superseded"]
    core.drain(OTHER)
    assert found(core, "newest", org=OTHER) == ["k"]
    assert "newer" not in str(core.call("memory.search", query="newer", org=OTHER)["results"])


def test_what_is_redacted_stays_so(core: Core) -> None:
    core.call("memory.set", memory_key="k", value="plumbago")
    lines = exported(core)
    imported(core, lines)
    core.call("memory.redact", memory_key="k", org=OTHER)
    answer = imported(core, lines)
    assert [one["line"] for one in answer["refused"]] == [1]
    assert "plumbago" not in json.dumps(exported(core, OTHER))
    core.call("memory.redact", memory_key="k")
    imported(core, lines, "third-org")
    assert imported(core, exported(core), "third-org")["imported"] == 2  # the memory, and when its namespace changed
    assert "plumbago" not in json.dumps(exported(core, "third-org"))
    assert found(core, "plumbago", org="third-org") == []


Changed = list[tuple[dict[str, Any], str]]
BAD: Changed = [
    ({"kind": "other"}, "kind"),
    ({"memory_id": "mem_1"}, "memory_id"),
    ({"memory_id": "mem_0000000000000000"}, "memory_id"),
    ({"namespace": "a\nb"}, "namespace"),
    ({"agent": ""}, "agent"),
    ({"memory_key": ""}, "memory_key"),
    ({"status": "superseded"}, "status"),
    ({"status": "tombstoned"}, "status"),
    ({"version_text": "1"}, "versions"),
    ({"version_text": "9223372036854775807"}, "versions"),
    ({"memory_id": "mem_7fffffffffffffff"}, "version_text"),
    ({"pinned": "yes"}, "pinned"),
    ({"lock_mode": "tight"}, "lock_mode"),
    ({"expires_at": "2026-01-01T00:00:00"}, "expires_at"),
    ({"versions": []}, "versions"),
    ({"versions": [{}]}, "versions"),
]
BAD_VERSIONS: Changed = [
    ({"content_sha256": "0" * 64}, "versions"),
    ({"value": "another"}, "versions"),
    ({"has_value": False}, "versions"),
    ({"status": "superseded"}, "status"),
    ({"char_limit": 5}, "char_limit"),
    ({"memory_type": "profile", "char_limit": 3}, "value"),
    ({"source_trace": "memory.delete_version:1"}, "source_trace"),
    ({"valid_at": "2026-02-01T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z"}, "valid_to"),
    ({"confidence": 2}, "versions.0.confidence"),
    ({"version_text": "x"}, "versions.0.version_text"),
]


@pytest.mark.parametrize(("change", "field"), BAD, ids=lambda part: str(part)[:40])
def test_a_bad_line_is_refused_alone(core: Core, change: dict[str, Any], field: str) -> None:
    def changed(line: dict[str, Any]) -> dict[str, Any]:
        return line | change

    refuse(core, changed, field)


@pytest.mark.parametrize(("change", "field"), BAD_VERSIONS, ids=lambda part: str(part)[:40])
def test_a_bad_version_is_refused_with_its_line(core: Core, change: dict[str, Any], field: str) -> None:
    def changed(line: dict[str, Any]) -> dict[str, Any]:
        return line | {"versions": [line["versions"][0] | change]}

    refuse(core, changed, field)


def refuse(core: Core, change: Any, field: str) -> None:
    core.call("memory.set", memory_key="a", value="first")
    core.call("memory.set", memory_key="b", value="second")
    space, one, two = exported(core)
    answer = imported(core, [space, change(copy.deepcopy(one)), two])
    assert answer["imported"] == 2
    [refusal] = answer["refused"]
    assert refusal["line"] == 1
    assert field in refusal["reason"]
    assert not core.call("memory.get", memory_key="a", org=OTHER)["found"]
    assert core.call("memory.get", memory_key="b", org=OTHER)["found"]
    assert "first" not in json.dumps(exported(core, OTHER))


def test_ids_and_keys_of_others_are_not_taken(core: Core) -> None:
    core.call("memory.set", memory_key="a", value="first")
    core.call("memory.set", memory_key="b", value="same moment")
    [_, line, other] = exported(core)
    imported(core, [line], "fourth-org")
    said = {name: other["versions"][0][name] for name in ("value", "content_sha256")}
    forged = line | {"versions": [line["versions"][0] | said]}
    assert "with another value" in imported(core, [forged], "fourth-org")["refused"][0]["reason"]
    core.clock.step(seconds=1)
    core.call("memory.set", memory_key="a", value="mine", org=OTHER)
    assert "another memory has this key" in imported(core, [line])["refused"][0]["reason"]
    imported(core, [line], "third-org")
    moved = imported(core, [line | {"memory_key": "elsewhere"}], "third-org")
    assert "another key has this id" in moved["refused"][0]["reason"]


def test_an_export_of_one_namespace(core: Core) -> None:
    fill(core)
    lines = core.call("store.export", namespace="second")["lines"]
    assert [line["kind"] for line in lines] == ["namespace", "memory"]
    assert lines[1]["memory_key"] == "far"
    token = Caller("t", Role.ADMIN, {"org": ORG}, frozenset({"second"}))
    answer = core.call("store.export", namespace="second", all_namespaces=True, caller=token)
    assert answer["lines"] == lines
    assert answer["total"] == 2
    elsewhere = [lines[0] | {"name": "third"}, lines[1] | {"namespace": "third"}]
    refused_lines = core.call("store.import", namespace="second", lines=elsewhere, caller=token)["refused"]
    assert [one["code"] for one in refused_lines] == ["DENIED", "DENIED"]


def test_namespaces_keep_their_kind_and_description(core: Core) -> None:
    line = {
        "kind": "namespace",
        "name": "n",
        "namespace_kind": "knowledge",
        "description": "Dölümente",
        "created_at": "2025-01-01T00:00:00.5Z",
    }
    assert imported(core, [line])["imported"] == 1
    assert imported(core, [line])["unchanged"] == 1
    more = {"created_at": "2025-01-01T00:00:00.500000Z", "last_version": None, "repository": "", "tracker": ""}
    assert exported(core, OTHER) == [line | more]


def test_only_who_reads_everything_may(core: Core) -> None:
    refused(Denied, core.call, "store.export", caller=of_user("ann", role=Role.ADMIN))
    refused(Denied, core.call, "store.import", lines=[{}], caller=of_user("ann", role=Role.ADMIN))
    assert core.call("store.import", lines=[{}], caller=ADMIN)["refused"][0]["code"] == "VALIDATION"
    wrong: list[Any] = [[], [{}] * 501]
    for bad in wrong:
        assert refused(Rejected, core.call, "store.import", lines=bad).extras["field"] == "lines"
    assert refused(Rejected, core.call, "store.export", cursor="x").extras["field"] == "cursor"
