"""profile.users page by page, and the reads of profiles that profile.activity tells of."""

import pytest
from structured_kit import LATE, OPS, SCHEMA, TestBuilder, jobs_of, remember, settle

from fakes import Core, CoreOf
from loom.access.caller import Caller, ReadScope, Role
from loom.planes.profile.structured import queries
from loom.storage.interface import Database


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    made = core_of(OPS, jobs_of(TestBuilder()), LATE)
    made.call("profile.schema_set", json_schema=SCHEMA)
    return made


def narrow(user_id: str) -> Caller:
    return Caller("t", Role.VIEWER, {"org": "dev", "user_id": user_id}, None, ReadScope.OWN_USER)


def test_a_schema_has_its_properties_before_there_are_users(core: Core) -> None:
    answer = core.call("profile.users")
    assert (answer["users"], answer["properties"]) == ([], len(SCHEMA["properties"]))
    assert answer["schema_sha256"] == core.call("profile.schema_get")["schema_sha256"]


def test_each_user_with_a_memory_is_listed_once_whatever_else_they_have(core: Core) -> None:
    for user in ("eve", "ada", "bob"):
        for key in ("name", "age", "diet"):
            remember(core, key, "x", user_id=user)
    remember(core, "name", "nobody's", user_id="-")
    remember(core, "secret", "x", user_id="cat", sensitivity="high")
    core.call("memory.set", memory_key="name", value="x", user_id="dan", namespace="elsewhere")
    seen: list[str] = []
    cursor = ""
    for _ in range(3):
        page = core.call("profile.users", limit=2, cursor=cursor)
        seen += [one["user_id"] for one in page["users"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert (seen, cursor) == (["-", "ada", "bob", "eve"], "")


def test_a_narrow_token_is_shown_its_own_user_alone_and_none_without_memories(core: Core) -> None:
    remember(core, "name", "Ada")
    remember(core, "name", "Bob", user_id="bob")
    assert [one["user_id"] for one in core.call("profile.users", caller=narrow("bob"))["users"]] == ["bob"]
    assert core.call("profile.users", caller=narrow("zoe"))["users"] == []


def test_evidence_is_a_read_of_the_profile(core: Core) -> None:
    remember(core, "name", "Ada")
    settle(core)
    core.call("profile.evidence", user_id="ada", agent="reader")
    entries = core.call("profile.activity")["entries"]
    assert [(one["agent"], one["last_op"]) for one in entries] == [("reader", "profile.evidence")]


def test_a_page_of_users_is_found_by_an_index(sqlite_database: Database) -> None:
    with sqlite_database.transaction("dev", write=False) as tx:
        plan = tx.rows("EXPLAIN QUERY PLAN " + queries.USERS, namespace="local", after="", most=3)
    steps = [str(step["detail"]) for step in plan if "INDEX" in str(step["detail"])]
    assert len(steps) == 2
    assert all("ledger_item_fact" in step and "user_id>?" in step for step in steps)
