"""store.export and store.import over every plane: nothing is lost, and nothing gets in that is not of an export."""

import json
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

import pytest

from fakes import ORG, Clock, Core
from filled import (
    CODE_ORG,
    LEFT_BEHIND,
    ORGS,
    TABLES,
    TRACKER_ORG,
    Line,
    differences,
    exported,
    fill,
    first,
    imported,
    searched,
    tables,
    whole_core,
    with_part,
)
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Denied
from loom.storage.interface import Database

THERE = {ORG: "there", CODE_ORG: "there-code", TRACKER_ORG: "there-tracker"}


@pytest.fixture
def core(database: Database, clock: Clock, pool: Executor, tmp_path: Path) -> Core:
    return whole_core(tmp_path / "home", database, clock, pool)


@pytest.fixture
def full(core: Core, fill_again: Callable[..., None]) -> Core:
    fill_again(core, fill)
    return core


def moved(core: Core) -> None:
    for org, there in THERE.items():
        lines = exported(core, org)
        answer = imported(core, lines, there)
        assert (answer["imported"], answer["refused"]) == (len(lines), [])
        core.drain(there)


def test_every_table_is_moved_or_said_to_stay(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        sqlite = "SELECT name FROM sqlite_schema WHERE type = 'table' AND :org = :org"
        postgres = "SELECT tablename AS name FROM pg_catalog.pg_tables WHERE schemaname = 'loom' AND :org = :org"
        found = tx.rows(postgres if "Postgres" in type(database).__name__ else sqlite)
    own = ("store_", "text_", "vector_", "stamp", "sqlite_", "word_", "shared_", "migration")
    names = {str(row["name"]) for row in found if not str(row["name"]).startswith(own)}
    assert names - set(TABLES) - LEFT_BEHIND == set()
    assert set(TABLES) <= names


def test_what_every_plane_holds_comes_back_the_same(full: Core) -> None:
    moved(full)
    for org, there in THERE.items():
        assert differences(tables(full.database, org), tables(full.database, there)) == []
        assert exported(full, there) == exported(full, org)
        again = imported(full, exported(full, org), there)
        assert (again["imported"], again["refused"]) == (0, [])
    assert searched(full, THERE) == searched(full, {org: org for org in ORGS})


def test_the_pages_of_an_export_do_not_change_it(full: Core) -> None:
    for org in ORGS:
        whole = exported(full, org)
        assert exported(full, org, limit=7) == whole
        assert exported(full, org, limit=1) == whole


def test_nothing_that_was_deleted_for_good_is_exported(full: Core) -> None:
    for org in ORGS:
        assert "plumbago" not in json.dumps(exported(full, org))
    full.call("namespace.delete", name="second", confirm="second")
    for org, name in ((CODE_ORG, "shop"), (TRACKER_ORG, "bugs")):
        full.call("namespace.delete", org=org, name=name, confirm=name)
        assert exported(full, org) == []
    assert {line.get("namespace", line.get("name")) for line in exported(full, ORG)} == {
        "local",
        "dritte Welt",
        "shaped",
    }


def test_an_import_that_was_cut_short_is_finished_by_another(full: Core) -> None:
    for org, there in THERE.items():
        lines = exported(full, org)
        half = len(lines) // 2
        imported(full, lines[:half], there)
        full.drain(there)
        answer = imported(full, lines, there)
        assert (answer["imported"], answer["unchanged"], answer["refused"]) == (len(lines) - half, half, [])
        full.drain(there)
        assert differences(tables(full.database, org), tables(full.database, there)) == []


def test_a_later_export_brings_what_is_new(full: Core) -> None:
    moved(full)
    full.call("knowledge.add", uri="docs/tea.md", text="# Tea\n\nA fourth kind of brew: gyokuro.\n")
    full.call("knowledge.add", uri="long.txt", text="Short now.")
    full.call("conversation.append", session="planning", user_id="ann", messages=[{"role": "user", "content": "More."}])
    full.call("tracker.add", org=TRACKER_ORG, namespace="bugs", number=1, title="Kettle boils again", body="gyokuro")
    full.call("namespace.update", name="local", description="now described")
    for org, there in THERE.items():
        full.drain(org)
        assert imported(full, exported(full, org), there)["refused"] == []
        full.drain(there)
        assert differences(tables(full.database, org), tables(full.database, there)) == []
    assert searched(full, THERE) == searched(full, {org: org for org in ORGS})


def test_an_older_export_changes_nothing_that_is_later(full: Core) -> None:
    before = {org: exported(full, org) for org in ORGS}
    moved(full)
    full.clock.step(minutes=1)
    full.call("knowledge.add", org="there", uri="docs/tea.md", text="# Tea\n\nLater.\n")
    full.call("tracker.add", org="there-tracker", namespace="bugs", number=1, title="Later title")
    for there in THERE.values():
        full.drain(there)
    after = {there: tables(full.database, there) for there in THERE.values()}
    for org, there in THERE.items():
        assert imported(full, before[org], there)["imported"] == 0
        full.drain(there)
        assert differences(after[there], tables(full.database, there)) == []


FAR = "9100000000000000000"
Change = Callable[[Line], Line]
BAD: list[tuple[str, str, Change]] = [
    ("conversation", "session_key", lambda line: line | {"session_key": "0"}),
    ("conversation", "session_key", lambda line: line | {"session_key": "x"}),
    ("conversation", "user_id", lambda line: line | {"user_id": "a\nb"}),
    ("conversation", "title", lambda line: line | {"title": "x" * 301}),
    ("conversation", "turns", lambda line: line | {"turns": []}),
    ("conversation", "turns", lambda line: line | {"turns": [*line["turns"], line["turns"][0]]}),
    ("conversation", "turns", lambda line: with_part(line, "turns", {"content": "another"})),
    ("conversation", "turns", lambda line: with_part(line, "turns", {"content": 7})),
    ("conversation", "turns", lambda line: with_part(line, "turns", {"content": "x" * 1_000_001})),
    ("conversation", "turns", lambda line: with_part(line, "turns", {"item_id": FAR})),
    ("conversation", "turns", lambda line: with_part(line, "turns", {"role": ""})),
    ("conversation", "turns", lambda line: with_part(line, "turns", {"said_at": "99999-01-01T00:00:00Z"})),
    ("conversation", "turns", lambda line: with_part(line, "turns", {"seq": -1})),
    ("document", "version", lambda line: line | {"document_id": FAR}),
    ("document", "version", lambda line: line | {"version": FAR}),
    ("document", "version", lambda line: line | {"document_id": "2", "version": "1"}),
    ("document", "uri", lambda line: line | {"uri": "x" * 2049}),
    ("document", "uri", lambda line: line | {"uri": ""}),
    ("document", "revision", lambda line: line | {"latest": 1}),
    ("document", "latest", lambda line: line | {"latest": 0}),
    ("document", "revision", lambda line: line | {"revision": line["revision"] | {"format": "exe"}}),
    ("document", "revision", lambda line: line | {"revision": line["revision"] | {"outline": [[1, 1, 1]]}}),
    ("document", "revision", lambda line: line | {"revision": line["revision"] | {"content_sha256": "A" * 64}}),
    ("document", "parts", lambda line: with_part(line, "parts", {"text": "x" * 32_769})),
    ("document", "parts", lambda line: line | {"parts": [line["parts"][0], line["parts"][0]]}),
    ("issue", "item_id", lambda line: line | {"item_id": "-5"}),
    ("issue", "stamp", lambda line: line | {"stamp": FAR}),
    ("issue", "stamp", lambda line: line | {"stamp": "1"}),
    ("issue", "number", lambda line: line | {"number": 0}),
    ("issue", "title", lambda line: line | {"title": ""}),
    ("issue", "body", lambda line: line | {"body": "x" * 262_145}),
    ("issue", "state", lambda line: line | {"state": "gone"}),
    ("issue", "frames", lambda line: line | {"frames": [["", "a.py"]]}),
    ("issue", "frames", lambda line: line | {"frames": [["x" * 201, ""]]}),
    ("issue", "frames", lambda line: line | {"frames": [["a"]]}),
    ("repository", "source", lambda line: line | {"source": "relative/folder"}),
    ("repository", "source", lambda line: line | {"source": "/"}),
    ("repository", "source", lambda line: line | {"source_kind": "git", "source": "ext::sh -c touch% x"}),
    ("repository", "source", lambda line: line | {"source_kind": "git", "source": "https://user:key@host.org/a/b"}),
    ("repository", "revision", lambda line: line | {"revision": "--upload-pack=x"}),
    ("repository", "commit_id", lambda line: line | {"commit_id": "main"}),
    ("repository", "state", lambda line: line | {"state": "other"}),
    ("repository", "generation", lambda line: line | {"generation": "1"}),
    ("repository", "files", lambda line: line | {"files": [line["files"][0], line["files"][0]]}),
    ("repository", "files", lambda line: with_part(line, "files", {"path": "keys/id_rsa"})),
    ("repository", "files", lambda line: with_part(line, "files", {"path": "a\x1bb.py"})),
    ("repository", "files", lambda line: with_part(line, "files", {"file_id": FAR})),
    ("repository", "files", lambda line: with_part(line, "files", {"content": "x" * 20_001})),
    ("profile_schema", "json_schema", lambda line: line | {"json_schema": "[]"}),
    ("profile_schema", "json_schema", lambda line: line | {"json_schema": '{"type": "array"}'}),
    ("profile_schema", "json_schema", lambda line: line | {"json_schema": "x" * 65_537}),
    ("profile_schema", "schema_sha256", lambda line: line | {"schema_sha256": "0" * 64}),
    ("profile_schema", "schema_sha256", lambda line: line | {"json_schema": ""}),
    ("profile_schema", "version", lambda line: line | {"version": FAR}),
    ("memory", "memory_key", lambda line: line | {"memory_key": "loom/structured-profile"}),
    ("memory", "memory_type", lambda line: with_part(line, "versions", {"memory_type": "structured_profile"})),
    ("namespace", "name", lambda line: line | {"name": "a\nb"}),
    ("namespace", "namespace_kind", lambda line: line | {"namespace_kind": "other"}),
    ("namespace", "last_version", lambda line: line | {"last_version": FAR}),
    ("namespace", "repository", lambda line: line | {"repository": "x" * 513}),
]


def test_a_crafted_line_is_refused_alone_and_leaves_nothing(full: Core) -> None:
    lines = [line for org in ORGS for line in exported(full, org)]
    for number, (kind, field, change) in enumerate(BAD):
        org = f"crafted-{number}"
        good = {"kind": "namespace", "name": "good", "namespace_kind": "memory", "created_at": "2026-01-01T00:00:00Z"}
        answer = imported(full, [good, change(first(lines, kind)), good | {"name": "too"}], org)
        assert answer["imported"] == 2, (kind, field, answer)
        [refusal] = answer["refused"]
        assert (refusal["line"], refusal["code"] in ("VALIDATION", "TOO_LONG")) == (1, True), (kind, field, refusal)
        assert field in refusal["reason"], (kind, field, refusal)
        after = tables(full.database, org)
        assert [name for name, rows in after.items() if rows] == ["namespace"], (kind, field)
        assert len(after["namespace"]) == 2


def test_a_token_moves_its_own_namespaces_alone(full: Core) -> None:
    token = Caller("t", Role.ADMIN, {"org": ORG}, frozenset({"second"}))
    lines = exported(full, ORG, caller=token, namespace="second")
    assert {line.get("namespace", line.get("name")) for line in lines} == {"second"}
    assert {line["kind"] for line in lines} == {"namespace", "memory", "conversation", "document"}
    there = Caller("t", Role.ADMIN, {"org": "there"}, frozenset({"other"}))
    every = [line for org in ORGS for line in exported(full, org)]
    answer = imported(full, every, "there", caller=there, namespace="other")
    assert [one["code"] for one in answer["refused"]] == ["DENIED"] * len(every)
    assert not any(tables(full.database, "there").values())


def test_only_an_admin_that_reads_everything_may(full: Core) -> None:
    pins = {"org": ORG, "user_id": "ann"}
    for role, scope in ((Role.WRITER, ReadScope.NAMESPACE), (Role.ADMIN, ReadScope.OWN_USER)):
        token = Caller("t", role, pins, None, scope)
        with pytest.raises(Denied):
            full.call("store.export", caller=token)
        with pytest.raises(Denied):
            full.call("store.import", caller=token, lines=[{"kind": "namespace"}])


@pytest.mark.parametrize("field", ["agent", "user_id", "session_id"])
def test_a_token_that_is_fixed_to_one_owner_imports_nothing(full: Core, field: str) -> None:
    token = Caller("t", Role.ADMIN, {"org": "there", field: "somebody"})
    line = first(exported(full, ORG), "memory")
    with pytest.raises(Denied):
        full.call("store.import", caller=token, org="there", lines=[line])
    assert not any(tables(full.database, "there").values())


def test_ids_and_names_of_others_are_not_taken(full: Core) -> None:
    lines = [line for org in ORGS for line in exported(full, org)]
    imported(full, lines, "all")
    forged: list[tuple[str, Line, str]] = [
        ("conversation", {"session_id": "elsewhere"}, "session_key: another conversation"),
        ("conversation", {"namespace": "elsewhere"}, "session_key: another conversation"),
        ("conversation", {"session_key": "1767225600000000001"}, "session_id: another conversation"),
        ("document", {"uri": "elsewhere"}, "document_id: another uri"),
        ("document", {"namespace": "elsewhere"}, "document_id: another uri"),
        ("document", {"document_id": "1767225600000000001"}, "uri: another document"),
        ("issue", {"number": 99}, "item_id: another issue"),
        ("issue", {"namespace": "elsewhere"}, "item_id: another issue"),
        ("issue", {"item_id": "1767225600000000001"}, "number: another issue"),
        ("issue", {"title": "Another title"}, "stamp: the issue is here"),
        ("repository", {"namespace": "elsewhere"}, "repository_id: another namespace"),
        ("repository", {"repository_id": "1767225600000000001"}, "namespace: holds another"),
        ("repository", {"namespace": "second"}, "namespace: is of kind memory"),
    ]
    before = tables(full.database, "all")
    for kind, change, reason in forged:
        answer = imported(full, [first(lines, kind) | change], "all")
        assert [one["reason"].startswith(reason) for one in answer["refused"]] == [True], (kind, change, answer)
    one, other = [line for line in lines if line["kind"] == "conversation"][:2]
    stolen = one | {"turns": other["turns"][:1]}
    assert "another turn" in imported(full, [stolen], "all")["refused"][0]["reason"]
    assert differences(before, tables(full.database, "all")) == []


def test_symbols_of_other_files_are_not_taken(full: Core) -> None:
    line = first(exported(full, CODE_ORG), "repository")
    imported(full, [line], "all")
    newest = str(max(int(one["file_id"]) for one in line["files"]) + 10**6)
    taken = next(one for one in line["files"] if one["symbol_ids"])
    forged = {**taken, "file_id": newest, "path": "new/forged.py"}
    answer = imported(full, [line | {"files": [forged]}], "all")
    assert "another symbol has the id" in answer["refused"][0]["reason"]
    other: Line = {**taken, "path": "new/forged.py", "symbol_ids": []}
    assert "another file has the id" in imported(full, [line | {"files": [other]}], "all")["refused"][0]["reason"]
    changed: Line = {**taken, "file_id": newest, "symbol_ids": [], "content": "def other(): ...\n"}
    assert imported(full, [line | {"files": [changed]}], "all")["imported"] == 1
    assert full.call("code.symbol", org="all", namespace="shop", name="other")["found"]


def test_a_document_whose_text_is_not_whole_is_not_cut(full: Core) -> None:
    lines = [line for line in exported(full, ORG) if line["kind"] == "document" and line["uri"] == "long.txt"]
    latest = [line for line in lines if line["revision"]["revision"] == line["latest"]]
    assert len(latest) == 2
    imported(full, latest[:1], "part")
    full.drain("part")
    [shown] = full.call("knowledge.list", org="part")["items"]
    assert (shown["state"], shown["passage_count"]) == ("pending", 0)
    late = imported(full, lines[2:3], "late")
    assert late["refused"][0]["reason"].startswith("revision: the latest one is not here")
    imported(full, latest[1:], "part")
    full.drain("part")
    [shown] = full.call("knowledge.list", org="part")["items"]
    assert shown["state"] == "ready"
    assert shown["passage_count"] > 100


def test_a_document_that_changes_during_its_export_is_never_without_text(full: Core) -> None:
    found: list[Line] = []
    cursor = ""
    while True:
        answer = full.call("store.export", all_namespaces=True, limit=1, cursor=cursor)
        found += answer["lines"]
        cursor = answer["next_cursor"]
        if not cursor:
            break
        if found[-1].get("uri") == "long.txt" and "newer" not in json.dumps(found[-1]):
            full.call("knowledge.add", uri="long.txt", text=f"A newer text {len(found)} of the aye-aye.")
    assert imported(full, found, "raced")["refused"] == []
    full.drain("raced")
    for shown in full.call("knowledge.list", org="raced")["items"]:
        assert (shown["state"], shown["passage_count"] > 0) == ("ready", True), shown["uri"]
    assert imported(full, exported(full, ORG), "raced")["refused"] == []
    full.drain("raced")
    assert "aye-aye" in json.dumps(full.call("knowledge.search", org="raced", query="aye-aye"))


def test_a_conversation_that_is_going_out_is_not_brought_back_half(full: Core) -> None:
    lines = exported(full, ORG)
    messages = [{"role": "user", "content": f"Turn {number}"} for number in range(500)]
    for _ in range(3):
        full.call("conversation.append", org="there", session="big", messages=messages)
    line = first(exported(full, "there"), "conversation")
    full.call("conversation.delete", org="there", session="big", whole_session=True)
    assert "still on its way out" in imported(full, [line], "there")["refused"][0]["reason"]
    full.drain("there")
    assert imported(full, [line], "there")["imported"] == 1
    full.drain("there")
    assert full.call("conversation.get", org="there", session="big")["turns"]
    assert lines
