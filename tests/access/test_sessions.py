"""One-time codes and sessions, on each engine."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from fakes import ORG, Core, CoreOf
from loom import system
from loom.access import sessions
from loom.access.caller import LOCAL, Caller
from loom.access.sessions import Sessions
from loom.access.tokens import Authenticator
from loom.errors import Unauthenticated, Unavailable
from loom.storage.interface import SYSTEM_ORG, Raced, StoreError, Transaction
from loom.system import sign_in


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(system.OPS, {}, system.LATE)


def sessions_of(core: Core) -> Sessions:
    def note_use(token_id: str, at_us: int) -> None:
        system.note_use(core.later, token_id, at_us)

    authenticator = Authenticator(core.database, core.clock, loopback=True, note_use=note_use)
    return Sessions(core.database, authenticator, core.clock, system.Witness(core.later, ORG, core.clock))


def code_of(core: Core) -> str:
    return core.call("dashboard.link")["path"].removeprefix("/enter?code=")


def count(core: Core, table: str) -> int:
    with core.database.transaction(SYSTEM_ORG, write=False) as tx:
        rows = tx.rows(f"SELECT count(*) AS total FROM {table} WHERE org = :org")  # noqa: S608  # a name of this file
        return int(str(rows[0]["total"]))


def test_without_tokens_everybody_is_the_local_user(core: Core) -> None:
    found = sessions_of(core).of("")
    assert (found.caller, found.expires_at) == (LOCAL, None)
    assert sessions_of(core).of("nonsense").caller == LOCAL


def test_a_code_is_spent_once_whoever_asks_at_the_same_time(core: Core) -> None:
    kept, code = sessions_of(core), code_of(core)

    def spend(_: int) -> str:
        try:
            return kept.with_code(code)
        except (Unauthenticated, Unavailable):
            return ""

    with ThreadPoolExecutor(8) as pool:
        cookies = [cookie for cookie in pool.map(spend, range(8)) if cookie]
    assert len(cookies) == 1
    assert kept.of(cookies[0]).caller == LOCAL


def test_a_code_speaks_for_whoever_made_it(core: Core) -> None:
    made = core.call("token.mint", name="a", role="viewer", namespaces=["local"])
    kept = sessions_of(core)
    viewer = kept.of(kept.with_token(made["token"])).caller
    code = core.call("dashboard.link", caller=viewer)["path"].partition("=")[2]
    assert kept.of(kept.with_code(code)).caller == viewer
    core.call("token.revoke", token_id=made["token_id"])
    with pytest.raises(Unauthenticated):
        kept.with_code(core.call("dashboard.link", caller=viewer)["path"].partition("=")[2])


def test_codes_and_sessions_end(core: Core) -> None:
    core.call("token.mint", name="a", role="admin")
    kept = sessions_of(core)
    late = code_of(core)
    core.clock.step(seconds=sessions.CODE_TTL_S)
    with pytest.raises(Unauthenticated):
        kept.with_code(late)
    cookie = kept.open(LOCAL, "link")
    core.clock.step(seconds=sessions.SESSION_TTL_S - 1)
    assert kept.of(cookie).caller == LOCAL
    core.clock.step(seconds=1)
    with pytest.raises(Unauthenticated):
        kept.of(cookie)


def test_a_session_ends_when_its_token_expires(core: Core) -> None:
    made = core.call("token.mint", name="a", role="admin", ttl_days=1)
    kept = sessions_of(core)
    core.clock.step(hours=20)
    cookie = kept.with_token(made["token"])
    core.clock.step(hours=3)
    assert kept.of(cookie).caller.principal == made["token_id"]
    core.clock.step(hours=1)
    with pytest.raises(Unauthenticated):
        kept.of(cookie)


def test_what_is_over_is_cleared_away(core: Core) -> None:
    kept = sessions_of(core)
    for _ in range(3):
        code_of(core)
        kept.open(LOCAL, "link")
    core.clock.step(days=1)
    code_of(core)
    kept.open(LOCAL, "link")
    assert (count(core, "sign_in_code"), count(core, "sign_in_session")) == (1, 1)


def test_closing_ends_one_session(core: Core) -> None:
    core.call("token.mint", name="a", role="admin")
    kept = sessions_of(core)
    first, second = kept.open(LOCAL, "link"), kept.open(LOCAL, "link")
    kept.close(first)
    kept.close(first)
    with pytest.raises(Unauthenticated):
        kept.of(first)
    assert kept.of(second).caller == LOCAL


def test_a_token_that_is_no_good_opens_nothing(core: Core) -> None:
    core.call("token.mint", name="a", role="admin")
    for token in ("", "loom_x", "loom_0123456789ab_" + "a" * 43, "x" * 100_000):
        with pytest.raises(Unauthenticated):
            sessions_of(core).with_token(token)
    assert count(core, "sign_in_session") == 0


def sign_ins(core: Core, **args: Any) -> list[dict[str, Any]]:
    """What the audit has of signing in, the newest first, once what waits is written."""
    core.later.flush(SYSTEM_ORG)
    return core.call("audit.list", op="dashboard.sign_in", **args)["records"]


def tried(kept: Sessions, token: str) -> None:
    with pytest.raises(Unauthenticated):
        kept.with_token(token)


def test_a_sign_in_is_in_the_audit(core: Core) -> None:
    made = core.call("token.mint", name="ann", role="viewer")
    kept = sessions_of(core)
    kept.with_token(made["token"])
    core.clock.step(seconds=1)
    kept.with_code(code_of(core))
    by_link, by_token = sign_ins(core)
    assert (by_token["principal"], by_token["about"]) == (made["token_id"], {"by": "token"})
    assert (by_link["principal"], by_link["about"]) == ("local", {"by": "link"})
    assert by_token["outcome"] == by_link["outcome"] == {"signed_in": True}
    assert made["token"].rpartition("_")[2] not in str([by_token, by_link])
    assert sign_ins(core, principal=made["token_id"]) == [by_token]


def test_a_session_that_is_not_begun_leaves_no_record(core: Core) -> None:
    kept = sessions_of(core)
    kept._witness = Failing()
    with pytest.raises(Unavailable):
        kept.open(LOCAL, "token")
    assert (count(core, "sign_in_session"), sign_ins(core)) == (0, [])


class Failing:
    """A witness that cannot write."""

    def opened(self, tx: Transaction, caller: Caller, by: str) -> None:
        raise StoreError(f"{tx.org} {caller.principal} {by}")

    def refused(self, by: str, token: Caller | None) -> None:
        raise AssertionError((by, token))


def test_failed_sign_ins_are_counted_and_nothing_of_what_was_sent_is_kept(core: Core) -> None:
    made = core.call("token.mint", name="ann", pins={"org": ORG})
    kept = sessions_of(core)
    token_id, secret = made["token_id"], "s" * 43
    for _ in range(3):
        tried(kept, f"loom_{token_id}_{secret}")
        tried(kept, f"loom_{'0' * 12}_{secret}")
        tried(kept, "hunter2")
    with pytest.raises(Unauthenticated):
        kept.with_code("hunter2")
    found = {(one["about"]["by"], one["about"].get("token_id", "")): one for one in sign_ins(core)}
    assert {place: one["outcome"] for place, one in found.items()} == {
        ("token", token_id): {"signed_in": False, "attempts": 3},
        ("token", ""): {"signed_in": False, "attempts": 6},
        ("link", ""): {"signed_in": False, "attempts": 1},
    }
    assert {one["principal"] for one in found.values()} == {"-"}
    with core.database.transaction(SYSTEM_ORG, write=False) as tx:
        kept_rows = str(tx.rows("SELECT * FROM audit_record WHERE org = :org"))
    assert secret not in kept_rows
    assert "hunter2" not in kept_rows
    assert "0" * 12 not in kept_rows


def test_a_flood_of_failures_is_a_record_an_hour(core: Core) -> None:
    core.call("token.mint", name="ann")
    kept = sessions_of(core)
    for _ in range(4):
        for _ in range(50):
            tried(kept, "guess")
        core.later.flush(SYSTEM_ORG)
        core.clock.step(minutes=20)
    outcomes = [one["outcome"]["attempts"] for one in sign_ins(core)]
    assert outcomes == [200]
    core.clock.step(minutes=1)
    tried(kept, "guess")
    assert [one["outcome"]["attempts"] for one in sign_ins(core)] == [1, 200]


def test_failures_are_told_to_the_org_of_the_token_that_was_named(core: Core) -> None:
    core.call("token.mint", name="first")
    other = core.call("token.mint", name="theirs", org="other")
    core.call("token.revoke", org="other", token_id=other["token_id"])
    tried(sessions_of(core), other["token"])
    assert sign_ins(core) == []
    (record,) = sign_ins(core, org="other")
    assert record["about"] == {"by": "token", "token_id": other["token_id"]}


def test_two_servers_count_in_one_record(core: Core) -> None:
    core.call("token.mint", name="ann")
    payload = {"tenant": ORG, "by": "token", "token_id": ""}

    def note(_: int) -> None:
        for _ in range(10):
            with suppress(Raced):
                sign_in.note_refusals(core.bench, SYSTEM_ORG, [payload])
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(note, range(12)))
    (record,) = sign_ins(core)
    assert record["outcome"]["attempts"] == 12
