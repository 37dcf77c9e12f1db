"""One-time codes and sessions, on each engine."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fakes import Core, CoreOf
from loom import system
from loom.access import sessions
from loom.access.caller import LOCAL
from loom.access.sessions import Sessions
from loom.access.tokens import Authenticator
from loom.errors import Unauthenticated, Unavailable
from loom.storage.interface import SYSTEM_ORG


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(system.OPS, {}, system.LATE)


def sessions_of(core: Core) -> Sessions:
    def note_use(token_id: str, at_us: int) -> None:
        system.note_use(core.later, token_id, at_us)

    authenticator = Authenticator(core.database, core.clock, loopback=True, note_use=note_use)
    return Sessions(core.database, authenticator, core.clock)


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
    cookie = kept.open(LOCAL)
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
        kept.open(LOCAL)
    core.clock.step(days=1)
    code_of(core)
    kept.open(LOCAL)
    assert (count(core, "sign_in_code"), count(core, "sign_in_session")) == (1, 1)


def test_closing_ends_one_session(core: Core) -> None:
    core.call("token.mint", name="a", role="admin")
    kept = sessions_of(core)
    first, second = kept.open(LOCAL), kept.open(LOCAL)
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
