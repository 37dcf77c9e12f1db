"""The audit: what is recorded, exactly when, for whom to see, and for how long."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from fakes import AUDIT_DAYS, HTTP, Clock, Core, CoreOf
from loom import compose, system
from loom.access.caller import LOCAL, Caller, ReadScope, Role, Transport
from loom.errors import Denied, Locked, LoomError, NotFound, Rejected
from loom.ledger import embedding
from loom.ops import audit
from loom.ops.registry import Registry
from loom.ops.spec import Audited, Context, Kind
from loom.planes import profile
from loom.planes.tracker.ops_write import DELETE, DeleteAnswer
from loom.storage.interface import SYSTEM_ORG, Database, Raced

PLAIN = {
    *("memory.set", "memory.set_many", "memory.set_from_messages", "memory.update"),
    *("profile.set", "profile.replace", "tracker.add", "tracker.import"),
}
"""Writes that can replace what is there, which is their daily work: history or the source has what was replaced."""

SECRET = "zanzibar-words-that-nobody-may-record"


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    every = [op for op in compose.registry() if op.name != "ops.capabilities"]
    return core_of(every, embedding.JOBS, {**system.LATE, **profile.LATE})


def records(core: Core, *, caller: Caller = LOCAL, **args: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = core.call("audit.list", caller=caller, **args)["records"]
    return found


def ops_of(found: list[dict[str, Any]]) -> list[str]:
    return [str(one["op"]) for one in found]


def remembered(core: Core, key: str = "team/tea", **args: Any) -> None:
    core.call("memory.set", memory_key=key, value=SECRET, **args)


def of_org(org: str, principal: str = "t1", *namespaces: str, role: Role = Role.ADMIN) -> Caller:
    return Caller(principal, role, {"org": org}, frozenset(namespaces) or None)


def rows(database: Database, org: str) -> int:
    with database.transaction(org, write=False) as tx:
        row = tx.row("SELECT count(*) AS total FROM audit_record WHERE org = :org")
    return int(row["total"] or 0) if row else 0


def test_every_write_that_takes_away_or_needs_an_admin_is_recorded() -> None:
    for op in compose.registry():
        wanted = op.kind is not Kind.READ and (op.destructive or op.role is Role.ADMIN) and op.name not in PLAIN
        assert not wanted or op.audited is not None, op.name
        assert op.name not in PLAIN or op.audited is None, op.name


def test_a_record_says_who_did_what_to_what(core: Core) -> None:
    remembered(core)
    made = core.call("memory.redact", memory_key="team/tea")
    [one] = records(core)
    assert one == {
        "at": "2026-03-01T12:00:00Z",
        "op": "memory.redact",
        "namespace": "local",
        "principal": "local",
        "agent": "claude",
        "about": {"memory_key": "team/tea", "memory_id": made["memory_id"]},
        "outcome": {"versions_redacted": 1},
    }


def test_what_is_recorded_of_each_operation(core: Core) -> None:
    for key in ("a", "b"):
        remembered(core, key)
        remembered(core, key, source_trace=SECRET)
    core.call("memory.lock", memory_key="a", mode="no_delete", reason=SECRET)
    core.call("memory.lock", memory_key="a", mode="")
    first = core.call("memory.history", memory_key="a")["versions"][-1]["version_text"]
    core.call("memory.delete_version", memory_key="a", version_text=first)
    core.call("memory.delete", memory_key="a", source_trace=SECRET)
    core.call("memory.redact", memory_key="b")
    schema = {"type": "object", "title": SECRET, "properties": {"x": {"type": "string", "description": SECRET}}}
    core.call("profile.schema_set", json_schema=schema)
    core.call("profile.schema_delete")
    document = core.call("knowledge.add", uri=f"{SECRET}.md", title=SECRET, text=SECRET)["document_id"]
    core.call("knowledge.delete", document_id=document)
    core.call("conversation.append", session="s", title=SECRET, messages=[{"role": "user", "content": SECRET}])
    core.call("conversation.delete", session="s", whole_session=True)
    core.call("tracker.add", number=7, title=SECRET, body=SECRET)
    core.call("tracker.delete", number=7)
    core.call("code.delete")
    core.call("namespace.create", name="n", description=SECRET)
    core.call("namespace.update", name="n", description=SECRET)
    lines = core.call("store.export", namespace="n")["lines"]
    core.call("store.import", namespace="n", lines=lines)
    core.call("namespace.delete", name="n", confirm="n")
    token = core.call("token.mint", name=SECRET)
    core.call("token.revoke", token_id=token["token_id"])
    link = core.call("dashboard.link")
    found = records(core)
    about = {one["op"]: one["about"] for one in found}
    outcome = {one["op"]: one["outcome"] for one in found}
    assert set(about) == {op.name for op in compose.registry() if op.audited is not None}
    assert about["memory.delete_version"]["deleted_version_text"] == first
    assert [one["about"]["lock_mode"] for one in found if one["op"] == "memory.lock"] == ["", "no_delete"]
    assert about["knowledge.delete"] == {"document_id": document}
    assert about["conversation.delete"] == {"session": "s"}
    assert (about["tracker.delete"], outcome["tracker.delete"]) == ({"number": "7"}, {"deleted": True})
    assert about["namespace.delete"] == {"name": "n"}
    assert about["token.mint"] == {"token_id": token["token_id"], "role": "writer"}
    assert about["token.revoke"] == {"token_id": token["token_id"]}
    assert outcome["store.import"] == {"imported": 0, "unchanged": 1}
    said = str(found)
    assert SECRET not in said
    assert token["token"] not in said
    assert link["path"].partition("=")[2] not in said


def test_other_writes_leave_no_record(core: Core) -> None:
    remembered(core)
    core.call("memory.update", memory_key="team/tea", value="other")
    core.call("profile.append", label="style", addition="brief")
    core.call("memory.touch", memory_key="team/tea", ttl_seconds=60)
    core.call("memory.search", query="tea")
    assert records(core) == []
    assert rows(core.database, "dev") == 0


def test_a_write_that_fails_leaves_no_record(core: Core) -> None:
    remembered(core)
    core.call("memory.lock", memory_key="team/tea", mode="no_delete")
    wrongs: list[tuple[type[LoomError], str, dict[str, Any]]] = [
        (Locked, "memory.delete", {"memory_key": "team/tea"}),
        (NotFound, "memory.redact", {"memory_key": "nothing"}),
        (NotFound, "token.revoke", {"token_id": "nobody"}),
        (Rejected, "namespace.delete", {"name": "local", "confirm": "x"}),
    ]
    for wrong, op, args in wrongs:
        with pytest.raises(wrong):
            core.call(op, **args)
    assert ops_of(records(core)) == ["memory.lock"]


def test_a_record_goes_with_a_write_that_is_undone_and_run_again(core_of: CoreOf) -> None:
    """What fails behind the record, here on the way to the answer's JSON, takes it along."""
    raced = [Raced("lost"), Raced("lost again")]

    class RacedAnswer(DeleteAnswer):
        def model_dump(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            if raced:
                raise raced.pop()
            return super().model_dump(*args, **kwargs)

    def run(ctx: Context, request: Any) -> RacedAnswer:
        return RacedAnswer(**dict(DELETE.run(ctx, request)))

    core = core_of([replace(DELETE, gives=RacedAnswer, run=run), *system.OPS])
    core.call("tracker.delete", number=7, org="dev")
    assert raced == []
    assert ops_of(records(core)) == ["tracker.delete"]


def test_a_replay_is_recorded_once(core: Core) -> None:
    remembered(core)
    first = core.call("memory.delete", memory_key="team/tea", key="k1")
    assert core.call("memory.delete", memory_key="team/tea", key="k1") == first
    assert ops_of(records(core)) == ["memory.delete"]


def test_writes_at_once_are_each_recorded_once(core: Core) -> None:
    keys = [f"k{number}" for number in range(12)]
    for key in keys:
        remembered(core, key)

    def redact(key: str) -> str:
        try:
            core.call("memory.redact", memory_key=key)
        except LoomError as error:
            return error.code
        return ""

    with ThreadPoolExecutor(6) as threads:
        failed = sum(bool(code) for code in threads.map(redact, keys + keys))
    found = records(core)
    assert len(found) == 2 * len(keys) - failed
    assert {one["about"]["memory_key"] for one in found} == set(keys)
    assert sum(one["outcome"]["versions_redacted"] for one in found) == len(keys)


def test_the_doer_is_not_the_agent_whose_row_was_meant(core: Core) -> None:
    remembered(core, agent="codex")
    args = {"org": "dev", "namespace": "local", "agent": "codex", "memory_key": "team/tea"}
    core.dispatcher.call("memory.delete", LOCAL, Transport(agent="cursor"), args)
    core.dispatcher.call("memory.restore", LOCAL, HTTP, args)
    pinned = Caller("t9", Role.WRITER, {"org": "dev", "agent": "codex"})
    core.dispatcher.call("memory.delete", pinned, Transport(agent="else"), {**args, "agent": None})
    assert [(one["principal"], one["agent"]) for one in records(core)] == [("t9", "codex"), ("local", "cursor")]


def test_orgs_see_their_own_alone(core: Core) -> None:
    one, other = of_org("one"), of_org("other", "t2")
    for caller in (one, other):
        remembered(core, caller=caller)
        core.call("memory.redact", memory_key="team/tea", caller=caller)
    assert [found["principal"] for found in records(core, caller=one)] == ["t1"]
    assert [found["principal"] for found in records(core, caller=other)] == ["t2"]
    with pytest.raises(Denied):
        records(core, caller=one, org="other")


def test_what_happens_to_a_token_belongs_to_its_org(core: Core) -> None:
    made = core.call("token.mint", name="x", pins={"org": "one"})
    core.call("token.revoke", token_id=made["token_id"])
    core.call("token.mint", name="y")
    found = records(core, caller=of_org("one"))
    assert [(one["op"], one["namespace"]) for one in found] == [("token.revoke", "-"), ("token.mint", "-")]
    assert ops_of(records(core)) == ["token.mint"]
    assert records(core, caller=of_org("third")) == []


def test_a_token_with_namespaces_sees_those_and_its_own_deeds(core: Core, clock: Clock) -> None:
    for space in ("a", "b"):
        remembered(core, namespace=space)
        core.call("memory.redact", memory_key="team/tea", namespace=space)
    clock.step(minutes=1)
    core.call("token.mint", name="x")
    narrow = of_org("dev", "t1", "a")
    core.call("dashboard.link", caller=narrow, namespace="a")
    found = records(core, caller=narrow, namespace="a")
    assert [(one["op"], one["namespace"]) for one in found] == [("dashboard.link", "-"), ("memory.redact", "a")]
    assert records(core, caller=narrow, namespace="a", about_namespace="b") == []
    assert len(records(core)) == 4


@pytest.mark.parametrize("role", [Role.VIEWER, Role.WRITER])
def test_it_is_for_admins(core: Core, role: Role) -> None:
    with pytest.raises(Denied):
        records(core, caller=of_org("dev", role=role))


def test_it_is_not_for_readers_of_one_user(core: Core) -> None:
    with pytest.raises(Denied):
        records(core, caller=Caller("t1", Role.ADMIN, {"org": "dev"}, None, ReadScope.OWN_USER))


def test_filters(core: Core, clock: Clock) -> None:
    remembered(core, namespace="a")
    core.call("memory.delete", memory_key="team/tea", namespace="a")
    clock.step(hours=1)
    core.call("token.mint", name="x")
    clock.step(hours=1)
    core.call("namespace.create", name="n", caller=of_org("dev", "t7"))
    assert ops_of(records(core)) == ["namespace.create", "token.mint", "memory.delete"]
    assert ops_of(records(core, op="token.mint")) == ["token.mint"]
    assert ops_of(records(core, principal="t7")) == ["namespace.create"]
    assert ops_of(records(core, about_namespace="a")) == ["memory.delete"]
    assert ops_of(records(core, about_namespace="n")) == ["namespace.create"]
    assert ops_of(records(core, since="2026-03-01T13:00:00Z")) == ["namespace.create", "token.mint"]
    assert ops_of(records(core, until="2026-03-01T13:00:00Z")) == ["memory.delete"]
    bounds: dict[str, Any] = {"since": "2026-03-01T13:00:00Z", "until": "2026-03-01T14:00:00Z"}
    assert ops_of(records(core, **bounds)) == ["token.mint"]


@pytest.mark.parametrize("standing", [True, False])
def test_pages_give_each_record_once_in_order(core: Core, clock: Clock, *, standing: bool) -> None:
    """Over three stores: the org's, the tracker's and the system's; also where the clock stands still."""
    for number in range(7):
        core.call("token.mint", name="x")
        core.call("tracker.delete", number=number + 1, org="tracker")
        core.call("namespace.create", name=f"n{number}")
        if not standing:
            clock.step(seconds=1)
    whole = core.call("audit.list", limit=200)
    assert (len(whole["records"]), whole["next_cursor"]) == (21, "")
    paged, cursor, turns = list[dict[str, Any]](), "", 0
    while turns == 0 or cursor:
        page = core.call("audit.list", limit=4, cursor=cursor)
        assert len(page["records"]) <= 4
        paged += page["records"]
        cursor, turns = page["next_cursor"], turns + 1
    assert (paged, turns) == (whole["records"], 6)
    assert [one["at"] for one in paged] == sorted((one["at"] for one in paged), reverse=True)


def test_stores_with_the_same_time_and_number_lose_no_record(core: Core) -> None:
    for org in ("dev", "tracker", SYSTEM_ORG):
        with core.database.transaction(org, write=True) as tx:
            for number in (1, 2):
                tx.send(
                    audit.KEEP, tenant="dev" if org == SYSTEM_ORG else org, at=5, record_id=number, op="x.y",
                    namespace=f"{org[-3:]}{number}", principal="x", agent="x", about="{}", outcome="{}",
                )  # fmt: skip
    seen, cursor = list[str](), ""
    for _ in range(6):
        page = core.call("audit.list", limit=1, cursor=cursor)
        seen += [one["namespace"] for one in page["records"]]
        cursor = page["next_cursor"]
    assert (len(set(seen)), len(seen), cursor) == (6, 6, "")


@pytest.mark.parametrize(
    "args",
    [
        {"cursor": "x"},
        {"cursor": "1.2"},
        {"cursor": "1.9999999999999999999.0"},
        {"limit": 0},
        {"limit": 201},
        {"since": "yesterday"},
        {"op": "x" * 65},
        {"principal": 3},
    ],
)
def test_bad_input_is_refused(core: Core, args: dict[str, Any]) -> None:
    with pytest.raises(Rejected):
        core.call("audit.list", **args)


def test_long_and_hostile_names_are_kept_as_they_are_up_to_a_bound(core: Core) -> None:
    key = "<script>\u202e'\"{}" + "ü" * (audit.ABOUT_LENGTH_MAX - 13)
    remembered(core, key)
    core.call("memory.delete", memory_key=key)
    [one] = records(core)
    assert one["about"]["memory_key"] == key
    assert max(len(value) for value in one["about"].values()) <= audit.ABOUT_LENGTH_MAX


def test_a_deleted_namespace_takes_the_names_in_its_records_along(core: Core) -> None:
    for space in ("gone", "stays"):
        remembered(core, f"{space}-key", namespace=space)
        core.call("memory.delete", memory_key=f"{space}-key", namespace=space)
    core.call("namespace.delete", name="gone", confirm="gone")
    found = {(one["op"], one["namespace"]): one for one in records(core)}
    assert found["memory.delete", "gone"]["about"] == {}
    assert found["memory.delete", "stays"]["about"]["memory_key"] == "stays-key"
    deleted = found["namespace.delete", "gone"]
    assert (deleted["about"], deleted["outcome"]) == ({"name": "gone"}, {"items_deleted": 1})


def test_old_records_are_forgotten_in_every_store(core: Core, clock: Clock) -> None:
    core.call("token.mint", name="old")
    core.call("namespace.create", name="old")
    clock.step(days=1)
    core.call("namespace.create", name="new")
    clock.step(days=AUDIT_DAYS - 1)
    orgs = ("dev", SYSTEM_ORG)

    def sweep() -> list[int]:
        for org in orgs:
            for one in system.SWEEPS:
                one(core.bench, org)
        return [rows(core.database, org) for org in orgs]

    assert sweep() == [2, 1], "kept to the last moment"
    clock.step(microseconds=1)
    assert sweep() == [1, 0]
    assert [one["about"]["name"] for one in records(core)] == ["new"]


def test_an_audit_of_what_there_is_not_is_refused_at_start() -> None:
    made = {op.name: op for op in compose.registry()}
    delete, read = made["tracker.delete"], made["tracker.get"]
    for op, audited in (
        (delete, Audited(about=("title",))),
        (delete, Audited(outcome=("number",), namespace="place")),
        (delete, Audited(outcome=("body",))),
        (read, Audited()),
    ):
        with pytest.raises(ValueError, match="audited"):
            Registry([replace(op, audited=audited)])
