"""What is taken away from a user's memories leaves their profile, and no build brings it back."""

from typing import Any

import pytest
from structured_kit import KEY, LATE, OPS, SCHEMA, TestBuilder, jobs_of, on, remember, settle, structured

from fakes import Core, CoreOf
from loom.access.caller import Caller, ReadScope, Role
from loom.canonical import measured
from loom.errors import Denied, KindConflict, NotFound, Rejected
from loom.planes.memory.sweeps import SWEEPS
from loom.storage.interface import Transaction

SECRET = "Zyxwv"


@pytest.fixture
def builder() -> TestBuilder:
    return TestBuilder()


@pytest.fixture
def core(core_of: CoreOf, builder: TestBuilder) -> Core:
    return core_of(OPS, jobs_of(builder), LATE)


def built(core: Core, name: str = SECRET) -> None:
    remember(core, "name", name)
    remember(core, "age", 36)
    core.call("profile.schema_set", json_schema=SCHEMA)
    settle(core)
    assert structured(core)["profile"] == {"name": name, "age": 36, "diet": None}


def reads(core: Core) -> dict[str, str]:
    """All that any read says of the user's profile, by the read; an export says the facts themselves, too."""
    made = {
        "profile.structured": structured(core),
        "profile.evidence": core.call("profile.evidence", user_id="ada"),
        "profile.users": core.call("profile.users"),
        "memory.get": on(core, "get", KEY),
        "memory.history": on(core, "history", KEY),
        "store.export": core.call("store.export"),
        "memory.list": core.call("memory.list", memory_types=["structured_profile"], bodies="full"),
        "excerpts": core.call("memory.list", memory_types=["structured_profile"]),
        "profile.render": core.call("profile.render"),
    }
    return {name: str(answer) for name, answer in made.items()}


def told(core: Core) -> str:
    """The same in one text."""
    return str(reads(core))


def profile_lines(core: Core) -> list[Any]:
    """The values of the profile's versions in an export, the newest first."""
    lines = core.call("store.export")["lines"]
    return [one["value"] for line in lines if line.get("memory_key") == KEY for one in line["versions"]]


def taken_away(core: Core, event: str) -> None:
    """The fact `name` is served no more."""
    if event == "high":
        on(core, "update", "name", sensitivity="high")
    elif event == "expire":
        on(core, "touch", "name", ttl_seconds=1)
        core.clock.step(seconds=2)
    else:
        on(core, "delete", "name")


def stored(core: Core) -> str:
    """Everything that the tables of the ledger and of builds hold."""
    names = ("ledger_item", "ledger_version", "derived_user", "derived_build", "derived_source", "job")
    with core.database.transaction("dev", write=False) as tx:
        return str([rows_of(tx, name) for name in names])


def rows_of(tx: Transaction, table: str) -> list[Any]:
    return [dict(row) for row in tx.rows(f"SELECT * FROM {table} WHERE org = :org")]  # noqa: S608  # names above


@pytest.mark.parametrize("name", ["rules", "model"])
def test_a_redacted_fact_leaves_the_profile_at_once_with_its_history(
    core: Core, builder: TestBuilder, name: str
) -> None:
    builder.name = name
    built(core)
    remember(core, "diet", "vegan")
    settle(core)
    on(core, "redact", "name")
    assert SECRET not in stored(core)
    answer = structured(core)
    assert answer["status"] == "stale"
    assert answer["profile"]["name"] is None
    # Of a model's values nothing can be trusted that might come from the fact.
    assert answer["profile"]["age"] == (36 if name == "rules" else None)
    settle(core)
    assert structured(core)["profile"] == {"name": None, "age": 36, "diet": "vegan"}
    assert structured(core)["status"] == "ready"


def test_what_another_fact_said_stays_in_the_history(core: Core) -> None:
    built(core)
    on(core, "redact", "age")
    assert SECRET in str(on(core, "history", KEY))
    assert structured(core)["profile"]["name"] == SECRET


@pytest.mark.parametrize("name", ["rules", "model"])
def test_a_version_that_is_deleted_leaves_the_profile_that_was_built_of_it(
    core: Core, builder: TestBuilder, name: str
) -> None:
    builder.name = name
    built(core)
    core.clock.step(seconds=1)
    remember(core, "name", "Ada")
    settle(core)
    assert SECRET in told(core)
    old = on(core, "history", "name")["versions"][1]["version_text"]
    on(core, "delete_version", "name", version_text=old)
    assert SECRET not in stored(core)
    answer = structured(core)
    assert answer["status"] == "ready"
    assert answer["profile"] == {"name": "Ada", "age": 36, "diet": None}


def test_a_fact_that_is_purged_leaves_the_history_of_the_profile(core: Core) -> None:
    built(core)
    on(core, "delete", "name")
    settle(core)
    assert SECRET in told(core)
    core.clock.step(days=15)
    for sweep in SWEEPS:
        sweep(core.bench, "dev")
    assert SECRET not in stored(core)


@pytest.mark.parametrize("event", ["delete", "high", "expire"])
def test_what_is_served_no_more_is_not_shown_by_a_profile_that_still_holds_it(core: Core, event: str) -> None:
    built(core)
    taken_away(core, event)
    answer = structured(core)
    assert answer["status"] == "stale"
    assert answer["profile"] == {"name": None, "age": 36, "diet": None}
    ways = {name: said for name, said in reads(core).items() if name != "store.export"}
    assert [name for name, said in ways.items() if SECRET in said] == []
    assert profile_lines(core) == [{"name": None, "age": 36, "diet": None}]
    assert SECRET in stored(core)  # until the next build, and in the history until the fact is purged
    got = on(core, "get", KEY)
    assert got["value"] == {"name": None, "age": 36, "diet": None}
    assert (got["content_sha256"], got["value_length"]) == (
        measured(got["value"]).sha256,
        measured(got["value"]).length,
    )
    held = core.call("memory.list", memory_types=["structured_profile"], contains=SECRET)
    assert (held["items"], held["total"]) == ([], 0)
    assert core.call("memory.list", memory_types=["structured_profile"], contains="36")["total"] == 1


@pytest.mark.parametrize("event", ["delete", "high", "expire"])
def test_what_is_served_no_more_is_not_in_the_past_of_a_profile(core: Core, event: str) -> None:
    """After the build that leaves it out, too; and what is served again is told again."""
    built(core)
    before = core.clock.now.isoformat()
    version = on(core, "get", KEY)["version_text"]
    core.clock.step(seconds=1)
    taken_away(core, event)
    core.clock.step(seconds=1)
    settle(core)
    for got in (on(core, "get", KEY, as_of=before), on(core, "get", KEY, version_text=version)):
        assert got["value"] == {"name": None, "age": 36, "diet": None}
    past = core.call("memory.list", memory_types=["structured_profile"], bodies="full", as_of=before)
    assert [one["value"]["name"] for one in past["items"]] == [None]
    assert SECRET not in str(on(core, "history", KEY))
    if event == "delete":
        on(core, "restore", "name")
        assert on(core, "get", KEY, version_text=version)["value"]["name"] == SECRET


def test_an_export_that_tells_less_goes_in_again(core: Core) -> None:
    built(core)
    on(core, "delete", "name")
    lines = core.call("store.export")["lines"]
    assert profile_lines(core) == [{"name": None, "age": 36, "diet": None}]
    on(core, "restore", "name")
    answer = core.call("store.import", lines=lines)
    assert answer["refused"] == []
    assert on(core, "get", KEY)["value"]["name"] == SECRET


def test_evidence_names_the_memory_and_says_when_it_moved_on(core: Core) -> None:
    built(core)
    source = core.call("profile.evidence", user_id="ada", property="name")["properties"][0]["sources"][0]
    assert source["text"] == SECRET
    assert source["memory_key"] == "name"
    assert source["live"]
    assert source["current"]
    remember(core, "name", "Ada")
    source = core.call("profile.evidence", user_id="ada", property="name")["properties"][0]["sources"][0]
    assert source["live"]
    assert not source["current"]
    assert source["text"] == SECRET
    assert [one["property"] for one in core.call("profile.evidence", user_id="ada")["properties"]] == [
        "name",
        "age",
        "diet",
    ]


@pytest.mark.parametrize("event", ["redact", "delete", "high", "version"])
@pytest.mark.parametrize("name", ["rules", "model"])
def test_a_late_build_brings_nothing_back(core: Core, builder: TestBuilder, event: str, name: str) -> None:
    builder.name = name
    built(core, "Ada")
    remember(core, "name", SECRET)
    head = on(core, "history", "name")["versions"][0]["version_text"]

    def take_away() -> None:
        builder.during = None
        if event == "high":
            on(core, "update", "name", sensitivity="high")
        elif event == "version":
            on(core, "delete_version", "name", version_text=head)
        else:
            on(core, event, "name")

    builder.during = take_away
    settle(core)
    assert builder.during is None
    assert SECRET not in str(on(core, "history", KEY))
    assert structured(core)["profile"]["name"] == ("Ada" if event == "version" else None)


def test_a_late_build_bears_with_facts_that_never_rest(core: Core, builder: TestBuilder) -> None:
    built(core)
    numbers = iter(range(100))

    def update() -> None:
        remember(core, "age", next(numbers))

    builder.during = update
    remember(core, "diet", "vegan")
    settle(core)
    builder.during = None
    answer = structured(core)
    assert answer["status"] == "stale"
    assert answer["profile"]["diet"] == "vegan"
    settle(core)
    assert structured(core)["status"] == "ready"


def test_a_late_build_never_brings_back_a_profile_that_was_redacted(core: Core, builder: TestBuilder) -> None:
    built(core)
    core.call("profile.rebuild", user_id="ada")

    def redact() -> None:
        builder.during = None
        on(core, "redact", KEY)

    builder.during = redact
    settle(core)
    assert structured(core)["status"] == "pending"
    assert SECRET not in str(on(core, "history", KEY))


def test_a_redacted_profile_is_built_again_when_a_fact_changes(core: Core) -> None:
    built(core)
    on(core, "redact", KEY)
    assert SECRET not in str(on(core, "history", KEY))
    settle(core)
    assert structured(core)["status"] == "pending"
    remember(core, "diet", "vegan")
    settle(core)
    assert structured(core)["profile"] == {"name": SECRET, "age": 36, "diet": "vegan"}


def test_a_profile_that_was_made_sensitive_says_nothing(core: Core) -> None:
    built(core)
    on(core, "update", KEY, sensitivity="high")
    answer = structured(core)
    assert answer["status"] == "pending"
    assert SECRET not in str(answer)
    assert SECRET not in str(core.call("profile.evidence", user_id="ada"))
    assert SECRET not in str(core.call("profile.users"))


def test_nobody_writes_a_profile_by_hand(core: Core) -> None:
    built(core)
    with pytest.raises(Rejected):
        remember(core, KEY, {"name": "x"})
    with pytest.raises(Rejected):
        remember(core, "other", {"name": "x"}, memory_type="structured_profile")
    with pytest.raises(Rejected):
        on(core, "update", KEY, value={"name": "x"})
    with pytest.raises(Rejected):
        on(core, "update", KEY, memory_type="semantic")
    with pytest.raises(Rejected):
        on(core, "update", "name", memory_type="structured_profile")
    with pytest.raises((Rejected, KindConflict)):
        core.call("profile.set", label=KEY, value="x", user_id="ada", agent="-")
    many = core.call("memory.set_many", user_id="ada", items=[{"memory_key": KEY, "value": 1}])
    assert many["refused"] == 1
    assert structured(core)["profile"]["name"] == SECRET


def test_a_profile_is_no_memory_and_no_section(core: Core) -> None:
    built(core)
    for key in ("name", "age"):
        on(core, "update", key, sensitivity="high")
    assert core.call("memory.search", query=SECRET)["results"] == []
    assert core.call("memory.search", query="when in March", recipe="temporal")["results"] == []
    assert core.call("profile.render")["section_count"] == 0
    assert core.call("memory.list", user_id="ada")["total"] == 2
    assert on(core, "get", KEY)["found"]


def test_only_the_one_user_is_read_whatever_the_token(core: Core) -> None:
    built(core)
    remember(core, "name", "Bob", user_id="bob")
    remember(core, "name", "All", user_id="-")
    settle(core)
    wide = Caller("t", Role.VIEWER, {"org": "dev"}, None, ReadScope.NAMESPACE)
    assert structured(core, caller=wide, user_id="bob")["profile"]["name"] == "Bob"
    assert structured(core, caller=wide, user_id="-")["profile"]["name"] == "All"
    own = Caller("t", Role.VIEWER, {"org": "dev", "user_id": "bob"}, None, ReadScope.OWN_USER)
    assert core.call("profile.structured", caller=own)["profile"]["name"] == "Bob"
    assert [one["user_id"] for one in core.call("profile.users", caller=own)["users"]] == ["bob"]
    with pytest.raises(Denied):
        core.call("profile.structured", caller=own, user_id="ada")
    session = Caller("t", Role.WRITER, {"org": "dev", "user_id": "bob"}, None, ReadScope.OWN_SESSION)
    for op in ("structured", "evidence", "users", "rebuild"):
        with pytest.raises(Denied):
            core.call(f"profile.{op}", caller=session)
    with pytest.raises(Rejected):
        structured(core, read_scope="own_session")


def test_a_token_of_one_session_neither_reads_nor_changes_the_row_that_keeps_the_profile(core: Core) -> None:
    built(core)
    version_text = on(core, "get", KEY)["version_text"]
    memory_id = on(core, "get", KEY)["memory_id"]
    one = Caller("t", Role.ADMIN, {"org": "dev", "user_id": "ada"}, None, ReadScope.OWN_SESSION)
    for more in ({}, {"as_of": "2100-01-01T00:00:00Z"}, {"version_text": version_text}):
        assert not core.call("memory.get", caller=one, memory_key=KEY, **more)["found"]
    for named in ({"memory_key": KEY}, {"memory_id": memory_id}):
        with pytest.raises(NotFound):
            core.call("memory.history", caller=one, **named)
    listing: dict[str, Any] = {"memory_types": ["structured_profile"], "bodies": "full"}
    assert core.call("memory.list", caller=one, **listing)["items"] == []
    assert core.call("memory.list", caller=one, as_of="2100-01-01T00:00:00Z", **listing)["items"] == []
    writes: dict[str, dict[str, Any]] = {
        "delete": {},
        "redact": {},
        "lock": {"mode": "no_delete"},
        "pin": {"pinned": True},
        "touch": {"ttl_seconds": 1},
        "delete_version": {"version_text": version_text},
    }
    for op, more in writes.items():
        with pytest.raises((NotFound, Denied)):
            core.call(f"memory.{op}", caller=one, memory_key=KEY, agent="-", **more)
    assert on(core, "get", KEY)["version_text"] == version_text
    assert structured(core)["status"] == "ready"
