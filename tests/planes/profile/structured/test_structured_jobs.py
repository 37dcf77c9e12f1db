"""When profiles are built: once for a burst, a bounded number of times in vain, one at a time, for everybody."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from structured_kit import (
    KEY,
    LATE,
    OPS,
    OTHER_SCHEMA,
    SCHEMA,
    WAIT_S,
    Gate,
    TestBuilder,
    give_up,
    jobs_of,
    on,
    remember,
    settle,
    structured,
)

from fakes import Core, CoreOf
from loom import system
from loom.errors import ShaMismatch
from loom.ledger import derived
from loom.planes import memory, profile
from loom.planes.profile.structured import job, status
from loom.planes.profile.structured.building import BUILD
from loom.planes.profile.structured.interface import BuildFailed

SUBJECT = derived.subject_of("local", "ada")


@pytest.fixture
def builder() -> TestBuilder:
    return TestBuilder()


@pytest.fixture
def core(core_of: CoreOf, builder: TestBuilder) -> Core:
    return core_of(OPS, jobs_of(builder), LATE)


def waiting(core: Core) -> list[tuple[str, int]]:
    """Builds that wait: whose, and in how many microseconds they are due."""
    with core.database.transaction("dev", write=False) as tx:
        rows = tx.rows("SELECT subject, run_at FROM job WHERE org = :org AND kind = :kind", kind=BUILD)
    return [(str(row["subject"]), max(0, int(str(row["run_at"])) - core.clock())) for row in rows]


def begun(core: Core) -> None:
    core.call("profile.schema_set", json_schema=SCHEMA)
    settle(core)


def test_a_namespace_without_a_schema_enqueues_nothing(core: Core) -> None:
    remember(core, "name", "Ada")
    on(core, "redact", "name")
    assert waiting(core) == []
    begun(core)
    core.call("profile.schema_delete")
    remember(core, "age", 3)
    assert waiting(core) == []


def test_a_burst_of_writes_makes_one_build(core: Core, builder: TestBuilder) -> None:
    begun(core)
    for number in range(20):
        remember(core, f"fact/{number}", "x")
        core.clock.step(seconds=0.1)
        core.drain()
    assert builder.builds == []
    settle(core)
    assert builder.builds == [20]
    assert waiting(core) == []


def test_writes_without_an_end_do_not_starve_a_build(core: Core, builder: TestBuilder) -> None:
    begun(core)
    for number in range(60):
        remember(core, f"fact/{number}", "x")
        core.clock.step(seconds=0.5)
        core.drain()
    assert 2 <= len(builder.builds) <= 4


def test_many_facts_in_one_call_ask_for_one_build(core: Core, builder: TestBuilder) -> None:
    begun(core)
    core.call("memory.set_many", user_id="ada", items=[{"memory_key": f"k{n}", "value": n} for n in range(50)])
    assert [subject for subject, _ in waiting(core)] == [SUBJECT]
    settle(core)
    assert builder.builds == [50]


def test_a_read_asks_for_a_build_only_where_one_is_needed(core: Core, builder: TestBuilder) -> None:
    remember(core, "name", "Ada", valid_to="2026-03-01T13:00:00Z")
    remember(core, "age", 36)
    begun(core)
    settle(core)
    assert len(builder.builds) == 1
    # The build is due again when the fact ends to hold, whoever reads.
    assert waiting(core) == [(SUBJECT, pytest.approx(3_600_000_000, abs=10_000_000))]
    structured(core)
    assert len([one for one in core.later.queued if one[0] == job.ASK]) == 0
    core.clock.step(hours=2)
    assert structured(core)["status"] == "stale"
    assert len([one for one in core.later.queued if one[0] == job.ASK]) == 1
    settle(core)
    assert structured(core)["profile"] == {"name": None, "age": 36, "diet": None}


def test_what_changes_with_time_is_built_without_a_reader(core: Core) -> None:
    remember(core, "name", "Ada", valid_at="2026-03-01T13:00:00Z")
    remember(core, "age", 36)
    begun(core)
    core.clock.step(hours=2)
    core.drain()
    assert structured(core)["status"] == "ready"
    assert structured(core)["profile"]["name"] == "Ada"


def test_a_failing_builder_is_tried_a_bounded_number_of_times(core: Core, builder: TestBuilder) -> None:
    begun(core)
    remember(core, "name", "Ada")
    settle(core)
    builder.fails = True
    remember(core, "age", 36)
    core.clock.step(seconds=2)
    handler = core.jobs[BUILD]
    for _ in range(status.FAILURES_MAX - 1):
        with pytest.raises(BuildFailed):
            handler(core.bench, "dev", [SUBJECT])
    handler(core.bench, "dev", [SUBJECT])
    give_up(core)
    answer = structured(core)
    assert answer["status"] == "stale"
    assert answer["profile"]["name"] == "Ada"
    assert core.call("profile.users")["users"][0]["failures"] == status.FAILURES_MAX
    settle(core)
    assert len(builder.builds) == 1 + status.FAILURES_MAX
    core.clock.step(seconds=status.RETRY_AFTER_US / 1_000_000)
    builder.fails = False
    structured(core)
    settle(core)
    assert structured(core)["status"] == "ready"


def test_one_that_fails_stops_no_other(core: Core, builder: TestBuilder) -> None:
    begun(core)
    remember(core, "name", "Ada")
    remember(core, "name", "Bob", user_id="bob")

    def fail_once() -> None:
        builder.fails = len(builder.builds) == 1

    builder.during = fail_once
    with pytest.raises(BuildFailed):
        core.jobs[BUILD](core.bench, "dev", [SUBJECT, derived.subject_of("local", "bob")])
    assert {structured(core)["status"], structured(core, user_id="bob")["status"]} == {"ready", "pending"}


def test_values_that_do_not_fit_are_left_out(core: Core) -> None:
    remember(core, "name", 7)
    remember(core, "age", 36)
    begun(core)
    assert structured(core)["profile"] == {"name": None, "age": 36, "diet": None}


def test_a_rebuild_writes_a_higher_version_of_a_current_profile(core: Core) -> None:
    remember(core, "name", "Ada")
    begun(core)
    before = structured(core)
    assert core.call("profile.rebuild", user_id="ada") == {"status": "ready", "asked": True}
    core.drain()
    after = structured(core)
    assert after["version"] > before["version"]
    assert after["built_at"] != before["built_at"]
    assert after["memory_id"] == before["memory_id"]
    assert core.call("profile.rebuild", user_id="nobody") == {"status": "ready", "asked": False}


def test_a_lock_keeps_what_was_built_and_when(core: Core) -> None:
    remember(core, "name", "Ada")
    begun(core)
    before = structured(core)
    core.clock.step(minutes=5)
    on(core, "lock", KEY)
    assert structured(core) == before
    on(core, "lock", KEY, mode="")
    on(core, "pin", KEY)
    assert structured(core) == before


def test_an_older_version_comes_back_with_the_moment_of_its_build(core: Core) -> None:
    remember(core, "name", "Ada")
    begun(core)
    first = structured(core)
    remember(core, "age", 36)
    settle(core)
    second = structured(core)
    on(core, "delete_version", KEY, version_text=second["version_text"])
    third = structured(core)
    assert third == {**first, "status": "stale"}
    settle(core)
    fourth = structured(core)
    assert fourth["status"] == "ready"
    assert fourth["version"] > second["version"]


@pytest.mark.slow
def test_a_new_schema_has_everybody_built(core: Core, builder: TestBuilder) -> None:
    users = [f"u{number:04}" for number in range(job.SPREAD_MAX + 3)]
    for user in users:
        remember(core, "name", user, user_id=user)
    begun(core)
    for _ in range(3):
        core.drain()
    assert len(builder.builds) == len(users)
    page = core.call("profile.users", limit=100)
    seen = list(page["users"])
    while page["next_cursor"]:
        page = core.call("profile.users", limit=100, cursor=page["next_cursor"])
        seen += page["users"]
    assert [one["user_id"] for one in seen] == users
    assert {one["status"] for one in seen} == {"ready"}
    assert {one["settled"] for one in seen} == {1}


def test_an_edited_schema_shows_what_still_means_the_same(core: Core) -> None:
    remember(core, "name", "Ada")
    remember(core, "age", 36)
    begun(core)
    core.call("profile.schema_set", json_schema=OTHER_SCHEMA)
    answer = structured(core)
    assert answer["status"] == "stale"
    assert answer["profile"] == {"name": "Ada", "age": None, "city": None}


def test_an_edit_during_a_build_has_it_built_again(core: Core, builder: TestBuilder) -> None:
    remember(core, "name", "Ada")

    def edit() -> None:
        builder.during = None
        core.call("profile.schema_set", json_schema=OTHER_SCHEMA)

    builder.during = edit
    begun(core)
    assert list(structured(core)["profile"]) == ["name", "age", "city"]
    assert structured(core)["status"] == "ready"


def test_two_workers_build_a_user_one_after_the_other(core: Core, builder: TestBuilder) -> None:
    begun(core)
    remember(core, "name", "Ada")
    core.clock.step(seconds=2)
    gate = Gate()
    builder.during = gate
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(core.jobs[BUILD], core.bench, "dev", [SUBJECT])
        assert gate.reached.wait(WAIT_S)
        core.jobs[BUILD](core.bench, "dev", [SUBJECT])
        assert builder.builds == [1]
        assert [subject for subject, _ in waiting(core)] == [SUBJECT]
        gate.open.set()
        first.result(WAIT_S)
    builder.during = None
    core.clock.step(seconds=3)
    core.drain()
    assert builder.builds == [1]
    assert structured(core)["status"] == "ready"


def test_a_dead_workers_build_is_taken_over(core: Core, builder: TestBuilder) -> None:
    begun(core)
    remember(core, "name", "Ada")
    core.clock.step(seconds=2)

    def die() -> None:
        raise KeyboardInterrupt

    builder.during = die
    with pytest.raises(KeyboardInterrupt):
        core.drain()
    builder.during = None
    assert core.drain() == 0
    core.clock.step(seconds=61)
    core.drain()
    assert structured(core)["status"] == "ready"


def test_an_old_build_does_not_take_the_place_of_a_newer_one(core: Core, builder: TestBuilder) -> None:
    """A worker that was taken for dead wakes after another one has built."""
    begun(core)
    remember(core, "name", "Ada")

    def overtake() -> None:
        builder.during = None
        remember(core, "name", "Ada L.")
        core.clock.step(seconds=61)
        core.jobs[BUILD](core.bench, "dev", [SUBJECT])

    builder.during = overtake
    core.clock.step(seconds=2)
    core.drain()
    answer = structured(core)
    assert answer["status"] == "ready"
    assert answer["profile"]["name"] == "Ada L."


def test_writers_and_builders_at_once_end_with_the_last_word(core: Core) -> None:
    begun(core)
    stop = threading.Event()
    errors: list[BaseException] = []

    def build() -> None:
        while not stop.is_set():
            # Facts that are taken away faster than they are built of have the build tried again later.
            with suppress(BuildFailed):
                core.jobs[BUILD](core.bench, "dev", [SUBJECT])

    def write(agent: str) -> None:
        for number in range(8):
            remember(core, "age", number, agent=agent)
            on(core, "redact" if number % 3 == 2 else "get", "age", agent=agent)

    with ThreadPoolExecutor(5) as pool:
        builders = [pool.submit(build) for _ in range(2)]
        writers = [pool.submit(write, f"agent{number}") for number in range(3)]
        errors += [error for one in writers if (error := one.exception(WAIT_S * 3)) is not None]
        stop.set()
        errors += [error for one in builders if (error := one.exception(WAIT_S)) is not None]
    assert errors == []
    core.clock.step(seconds=61)
    core.call("profile.rebuild", user_id="ada")
    core.drain()
    answer = structured(core)
    assert answer["status"] == "ready"
    assert answer["profile"]["age"] == 7


def test_two_admins_who_set_a_schema_at_once_do_not_lose_one(core: Core) -> None:
    first = core.call("profile.schema_set", json_schema=SCHEMA)

    def edit(number: int) -> object:
        edited = {**SCHEMA, "title": f"edit {number}"}
        try:
            return core.call("profile.schema_set", json_schema=edited, if_match_sha256=first["schema_sha256"])
        except ShaMismatch as refusal:
            return refusal

    with ThreadPoolExecutor(4) as pool:
        outcomes: Sequence[Any] = list(pool.map(edit, range(4)))
    assert sum(isinstance(one, ShaMismatch) for one in outcomes) == 3
    assert len(core.call("profile.schema_get")["history"]) == 2


def test_an_import_has_profiles_built(core: Core) -> None:
    remember(core, "name", "Ada")
    begun(core)
    lines = core.call("store.export")["lines"]
    assert {"name", KEY} <= {line.get("memory_key") for line in lines}
    fact = next(line for line in lines if line.get("memory_key") == "name")
    with core.database.transaction("dev", write=True) as tx:
        profile.purge_namespace(tx, "local")
    core.call("profile.schema_set", json_schema=SCHEMA)
    assert structured(core)["status"] == "stale"
    assert structured(core)["profile"]["name"] is None
    settle(core)
    assert structured(core)["status"] == "ready"
    assert structured(core)["profile"]["name"] == "Ada"
    moved = {**fact, "namespace": "local", "user_id": "bob", "memory_id": f"mem_{2**60 + 5:016x}"}
    assert core.call("store.import", lines=[moved])["imported"] == 1
    assert structured(core, user_id="bob")["status"] == "pending"
    settle(core)
    assert structured(core, user_id="bob")["profile"]["name"] == "Ada"


def test_a_deleted_namespace_leaves_nothing(core_of: CoreOf, builder: TestBuilder) -> None:
    core = core_of((*memory.OPS, *profile.OPS, *system.operations((profile.purge_namespace,))), jobs_of(builder), LATE)
    remember(core, "name", "Ada")
    begun(core)
    core.call("namespace.delete", name="local", confirm="local")
    with core.database.transaction("dev", write=False) as tx:
        left = {
            name: len(tx.rows(f"SELECT 1 AS one FROM {name} WHERE org = :org"))  # noqa: S608  # names below
            for name in ("profile_schema", "derived_watch", "derived_user", "derived_build", "derived_source")
        }
    assert set(left.values()) == {0}
    assert structured(core)["status"] == "no_schema"
