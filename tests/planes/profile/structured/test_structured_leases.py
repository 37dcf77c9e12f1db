"""A build that dies of what nobody foresaw keeps no other user waiting."""

import pytest
from structured_kit import LATE, OPS, SCHEMA, TestBuilder, jobs_of, remember, structured

from fakes import CoreOf


def test_a_build_that_dies_gives_the_other_users_back(core_of: CoreOf) -> None:
    builder = TestBuilder()
    core = core_of(OPS, jobs_of(builder), LATE)
    core.call("profile.schema_set", json_schema=SCHEMA)
    for user in ("ada", "bob"):
        remember(core, "name", user, user_id=user)

    def die() -> None:
        builder.during = None
        raise ZeroDivisionError

    builder.during = die
    core.clock.step(seconds=2)
    with pytest.raises(ZeroDivisionError):
        core.drain()
    assert builder.builds == [1]
    core.drain()
    assert [structured(core, user_id=user)["status"] for user in ("ada", "bob")] == ["pending", "ready"]
