"""Builds while their model is left alone: they wait, and have not failed."""

import pytest
from structured_kit import LATE, OPS, SCHEMA, TestBuilder, jobs_of, settle, structured

from fakes import Core, CoreOf
from loom.jobs.handlers import PutOff
from loom.planes.profile.structured.status import FAILURES_MAX

REST_S = 7.0
USERS = ("ada", "ben", "cia")


@pytest.fixture
def builder() -> TestBuilder:
    return TestBuilder()


@pytest.fixture
def core(core_of: CoreOf, builder: TestBuilder) -> Core:
    return core_of(OPS, jobs_of(builder), LATE)


def counted(core: Core) -> set[tuple[int, int]]:
    """How often builds failed, and until when they are leased."""
    with core.database.transaction("dev", write=False) as tx:
        rows = tx.rows("SELECT failures, building_until FROM derived_user WHERE org = :org")
    return {(int(str(row["failures"])), int(str(row["building_until"]))) for row in rows}


def test_they_wait_for_the_rest_however_often_they_are_put_off(core: Core, builder: TestBuilder) -> None:
    core.call("profile.schema_set", json_schema=SCHEMA)
    settle(core)
    for user in USERS:
        core.call("memory.set", memory_key="name", value=user.title(), user_id=user)
    builder.rest_s = REST_S
    for number in range(1, FAILURES_MAX + 3):
        core.clock.step(seconds=REST_S)
        with pytest.raises(PutOff) as put_off:
            core.drain()
        assert put_off.value.rest_s == REST_S
        assert len(builder.builds) == number  # the first says it for all
        assert counted(core) == {(0, 0)}
    builder.rest_s = 0.0
    core.clock.step(seconds=REST_S)
    core.drain()
    assert [structured(core, user_id=user)["profile"]["name"] for user in USERS] == ["Ada", "Ben", "Cia"]


def test_what_was_built_before_it_stays_built(core: Core, builder: TestBuilder) -> None:
    core.call("profile.schema_set", json_schema=SCHEMA)
    settle(core)
    for user in USERS:
        core.call("memory.set", memory_key="name", value=user.title(), user_id=user)

    def rest() -> None:
        builder.rest_s = REST_S if len(builder.builds) == 2 else 0.0

    builder.during = rest
    core.clock.step(seconds=REST_S)
    with pytest.raises(PutOff):
        core.drain()
    assert len(builder.builds) == 2
    builder.during, builder.rest_s = None, 0.0
    core.clock.step(seconds=2 * REST_S)
    core.drain()
    assert len(builder.builds) == 4
    assert [structured(core, user_id=user)["profile"]["name"] for user in USERS] == ["Ada", "Ben", "Cia"]
