"""Tokens that tokens minted: who did, how far they reach, and that they end with the one that minted them."""

import itertools
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from fakes import ORG, Core, CoreOf
from loom import system
from loom.access import tokens
from loom.access.caller import LOCAL, Caller, ReadScope, Role
from loom.access.sessions import Sessions
from loom.access.tokens import Authenticator
from loom.errors import Conflict, Denied, NotFound, Rejected, Unauthenticated
from loom.storage.interface import SYSTEM_ORG

WAIT_S = 30.0


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(system.OPS, {}, system.LATE)


def authenticator(core: Core) -> Authenticator:
    def note_use(token_id: str, at_us: int) -> None:
        system.note_use(core.later, token_id, at_us)

    return Authenticator(core.database, core.clock, loopback=True, note_use=note_use)


def sessions_of(core: Core) -> Sessions:
    return Sessions(core.database, authenticator(core), core.clock, system.Witness(core.later, ORG, core.clock))


def minted(core: Core, by: Caller = LOCAL, **args: Any) -> Caller:
    """Whom a new token stands for, an admin unless said otherwise."""
    made = core.call("token.mint", caller=by, **{"name": "a token", "role": "admin", **args})
    return authenticator(core).authenticate(f"Bearer {made['token']}")


def chain(core: Core, length: int, **args: Any) -> list[Caller]:
    """Tokens, each minted by the one before, the first by the local user."""
    made = [minted(core, **args)]
    while len(made) < length:
        made.append(minted(core, made[-1]))
    return made


def good(core: Core, callers: Collection[Caller]) -> list[bool]:
    """Which of them are let in."""
    found: list[bool] = []
    for caller in callers:
        try:
            authenticator(core).standing(caller.principal)
        except Unauthenticated:
            found.append(False)
        else:
            found.append(True)
    return found


def revoke(core: Core, token: Caller, by: Caller = LOCAL, **args: Any) -> tuple[int, int]:
    """Revoke it; how many ended with it, and how many were kept."""
    answer = core.call("token.revoke", caller=by, token_id=token.principal, **args)
    return answer["minted_revoked"], answer["minted_kept"]


def shown(core: Core) -> Mapping[str, Any]:
    """The listed tokens by id."""
    return {one["token_id"]: one for one in core.call("token.list")["tokens"]}


def test_a_token_knows_who_minted_it(core: Core) -> None:
    first, second, third = chain(core, 3)
    signed_in = sessions_of(core)
    by_page = signed_in.of(signed_in.open(second, "token")).caller
    fourth = core.call("token.mint", caller=by_page, name="from the dashboard")
    assert fourth["minted_by"] == second.principal
    listed = shown(core)
    assert listed[first.principal]["minted_by"] == "local"
    assert listed[second.principal]["minted_by"] == first.principal
    assert listed[third.principal]["minted_by"] == second.principal
    assert listed[fourth["token_id"]]["minted_by"] == second.principal


def test_a_token_from_before_minters_were_kept_has_none(core: Core) -> None:
    old, other = "0" * 12, minted(core)
    with core.database.transaction(SYSTEM_ORG, write=True) as tx:
        tx.run(
            "INSERT INTO access_token (org, token_id, secret_sha256, name, role, pins, read_scope, created_at) "
            "VALUES (:org, :token_id, '', 'old', 'admin', :pins, 'namespace', 1)",
            token_id=old,
            pins='{"org": "dev"}',
        )
    assert shown(core)[old]["minted_by"] is None
    before = Caller(old, Role.ADMIN, {"org": "dev"})
    child = minted(core, before)
    assert revoke(core, other) == (0, 0)
    assert good(core, [before, child]) == [True, True]
    assert revoke(core, before) == (1, 0)
    assert good(core, [before, child]) == [False, False]


def test_what_a_token_minted_ends_with_it(core: Core) -> None:
    first, second, third, fourth = chain(core, 4)
    sister, niece = minted(core, first), minted(core, second, role="viewer")
    assert revoke(core, second, by=first) == (3, 0)
    assert good(core, [first, second, third, fourth, sister, niece]) == [True, False, False, False, True, False]
    ends = {shown(core)[one.principal]["revoked_at"] for one in (second, third, fourth, niece)}
    assert ends == {"2026-03-01T12:00:00Z"}
    core.clock.step(hours=1)
    again = core.call("token.revoke", token_id=second.principal)
    assert (again["revoked_at"], again["minted_revoked"]) == ("2026-03-01T12:00:00Z", 0)
    assert shown(core)[fourth.principal]["revoked_at"] == "2026-03-01T12:00:00Z"


def test_what_ended_in_between_hides_nothing(core: Core) -> None:
    """A token that expired or was revoked alone still leads to what it minted."""
    first, second, third, fourth = chain(core, 4)
    assert revoke(core, second, keep_minted=True) == (0, 2)
    assert revoke(core, third, keep_minted=True) == (0, 1)
    assert good(core, [third, fourth]) == [False, True]
    assert revoke(core, first) == (1, 0)
    assert good(core, [fourth]) == [False]


def test_those_that_expired_are_not_counted(core: Core) -> None:
    first = minted(core)
    brief = minted(core, first, ttl_days=1)
    minted(core, brief)
    lasting = minted(core, first)
    core.clock.step(days=2)
    assert revoke(core, first, keep_minted=True) == (0, 1)
    assert revoke(core, first) == (1, 0)
    assert good(core, [brief, lasting]) == [False, False]
    assert shown(core)[brief.principal]["revoked_at"] is not None


def test_minted_tokens_can_be_kept_and_ended_later(core: Core) -> None:
    first, second, third = chain(core, 3)
    assert revoke(core, first, keep_minted=True) == (0, 2)
    assert good(core, [first, second, third]) == [False, True, True]
    assert good(core, [minted(core, second)]) == [True], "what is kept mints on"
    assert revoke(core, first) == (3, 0)
    assert good(core, [first, second, third]) == [False, False, False]


def test_a_token_that_ends_itself_ends_what_it_minted(core: Core) -> None:
    first, second = chain(core, 2)
    assert revoke(core, first, by=first) == (1, 0)
    assert good(core, [first, second]) == [False, False]


def test_a_token_can_end_the_one_that_minted_it_and_ends_with_it(core: Core) -> None:
    first, second = chain(core, 2)
    assert revoke(core, first, by=second) == (1, 0)
    assert good(core, [first, second]) == [False, False]


def test_other_tokens_and_other_orgs_are_untouched(core: Core) -> None:
    ours = chain(core, 3)
    beside = chain(core, 2)
    theirs = chain(core, 3, org="acme")
    assert {caller.pins["org"] for caller in theirs} == {"acme"}
    assert revoke(core, ours[0]) == (2, 0)
    assert good(core, [*beside, *theirs]) == [True] * 5
    with pytest.raises(NotFound):
        core.call("token.revoke", caller=theirs[0], token_id=beside[0].principal)
    assert good(core, [*beside, *theirs]) == [True] * 5


def test_the_audit_says_how_many_ended(core: Core) -> None:
    first, second, _ = chain(core, 3)
    revoke(core, second, keep_minted=True)
    core.clock.step(seconds=1)
    revoke(core, first)
    after, before = core.call("audit.list", op="token.revoke")["records"]
    assert (before["about"], before["outcome"]) == (
        {"token_id": second.principal},
        {"minted_revoked": 0, "minted_kept": 1},
    )
    assert (after["about"], after["outcome"]) == (
        {"token_id": first.principal},
        {"minted_revoked": 1, "minted_kept": 0},
    )


def test_sessions_and_links_end_with_the_first_token(core: Core) -> None:
    first, second, third = chain(core, 3)
    kept = sessions_of(core)
    cookies = [kept.open(caller, "token") for caller in (first, second, third)]
    code = core.call("dashboard.link", caller=third)["path"].partition("=")[2]
    elsewhere = minted(core)
    untouched = kept.open(elsewhere, "token")
    assert kept.of(cookies[2]).caller == third
    revoke(core, first)
    for cookie in cookies:
        with pytest.raises(Unauthenticated):
            kept.of(cookie)
    with pytest.raises(Unauthenticated):
        kept.with_code(code)
    assert kept.of(untouched).caller == elsewhere


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"token_id": ""}, "token_id"),
        ({"token_id": None}, "token_id"),
        ({"token_id": "x" * 257}, "token_id"),
        ({"token_id": "\x01"}, "token_id"),
        ({"keep_minted": "yes"}, "keep_minted"),
        ({"keep_minted": 1}, "keep_minted"),
    ],
)
def test_bad_input_revokes_nothing(core: Core, args: dict[str, Any], field: str) -> None:
    first, second = chain(core, 2)
    wrong: dict[str, Any] = {"token_id": first.principal, **args}
    with pytest.raises(Rejected) as raised:
        core.call("token.revoke", **wrong)
    assert raised.value.extras["field"] == field
    assert good(core, [first, second]) == [True, True]


@pytest.mark.parametrize("token_id", ["local", "-", "%", "0" * 12, "' OR 1=1", "000000000000' --"])
def test_an_id_of_no_token_revokes_nothing(core: Core, token_id: str) -> None:
    first, second = chain(core, 2)
    with pytest.raises(NotFound):
        core.call("token.revoke", token_id=token_id)
    assert good(core, [first, second]) == [True, True]


def test_only_so_many_tokens_mint_one_another(core: Core) -> None:
    last = chain(core, tokens.GENERATIONS_MAX + 1)
    with pytest.raises(Denied, match="64 tokens"):
        minted(core, last[-1])
    assert revoke(core, last[0]) == (tokens.GENERATIONS_MAX, 0)
    assert not any(good(core, last))


def test_a_token_that_is_no_good_mints_nothing(core: Core) -> None:
    """Who was let in a moment before the revocation, or the end, is refused by the mint itself."""
    revoked, brief, gone = minted(core), minted(core, ttl_days=1), Caller("f" * 12, Role.ADMIN, {"org": ORG})
    revoke(core, revoked)
    core.clock.step(days=1)
    for caller in (revoked, brief, gone):
        with pytest.raises(Unauthenticated):
            core.call("token.mint", caller=caller, name="late")
    assert {one["name"] for one in shown(core).values()} == {"a token"}


MINTERS: Mapping[str, dict[str, Any]] = {
    "an org's": {},
    "a user's": {"pins": {"user_id": "ada"}},
    "an agent's": {"pins": {"agent": "codex"}},
    "a session's": {"pins": {"session_id": "s"}},
    "of two namespaces": {"namespaces": ["a", "b"]},
    "of own rows": {"read_scope": "own_user"},
    "of one session's rows": {"read_scope": "own_session"},
}
WISHES: list[dict[str, Any]] = [
    {},
    {"pins": {"user_id": "ada"}},
    {"pins": {"user_id": "bob"}},
    {"pins": {"user_id": "-"}},
    {"pins": {"user_id": ""}},
    {"pins": {"agent": "codex"}},
    {"pins": {"agent": "claude"}},
    {"pins": {"session_id": "s"}},
    {"pins": {"session_id": "t"}},
    {"pins": {"org": "acme"}},
    {"pins": {"org": "-"}},
    {"namespaces": None},
    {"namespaces": ["a"]},
    {"namespaces": ["a", "c"]},
    {"read_scope": "own_session"},
    {"read_scope": "own_user"},
    {"read_scope": "namespace"},
]
WANTED = [{"role": role, **wish} for role, wish in itertools.product(("viewer", "writer", "admin"), WISHES)]


@pytest.mark.parametrize("kind", MINTERS)
def test_no_token_reaches_further_than_its_minter(core: Core, kind: str) -> None:
    """Every wish is refused, or grants nothing that the minter lacks; some are granted, some refused."""
    minter = minted(core, **MINTERS[kind])
    granted = 0
    for wanted in WANTED:
        try:
            child = minted(core, minter, namespace="a", **wanted)
        except Denied:
            continue
        granted += 1
        assert child.role <= minter.role
        assert child.read_scope <= minter.read_scope
        assert minter.pins.items() <= child.pins.items()
        assert minter.namespaces is None or (child.namespaces is not None and child.namespaces <= minter.namespaces)
    assert 0 < granted < len(WANTED)


@pytest.mark.parametrize("role", ["viewer", "writer"])
def test_only_an_admin_mints(core: Core, role: str) -> None:
    with pytest.raises(Denied):
        core.call("token.mint", caller=minted(core, role=role), name="x", role="viewer")


def test_an_admin_of_less_ends_no_token_of_more(core: Core) -> None:
    wide = minted(core)
    narrow = minted(core, wide, namespaces=["a"])
    below = minted(core, narrow, namespace="a", read_scope="own_user")
    with pytest.raises(NotFound):
        core.call("token.revoke", caller=narrow, namespace="a", token_id=wide.principal)
    assert good(core, [wide, narrow, below]) == [True, True, True]
    assert below == replace(narrow, principal=below.principal, read_scope=ReadScope.OWN_USER)


def test_a_mint_that_is_under_way_is_waited_for_and_revoked(core: Core) -> None:
    """The revocation finds what a mint had not committed when it began."""
    first = minted(core)
    ended: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: ended.append(revoke(core, first)))
    with core.database.transaction(SYSTEM_ORG, write=True) as tx:
        tokens.enter(tx)
        minter = tokens.find(tx, first.principal)
        _, child = tokens.mint(tx, first, "under way", core.clock(), None, minter)
        thread.start()
        thread.join(0.2)
        assert ended == []
    thread.join(WAIT_S)
    assert ended == [(1, 0)]
    assert good(core, [first, child.caller]) == [False, False]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_whoever_mints_while_it_is_revoked_no_child_lives(core: Core) -> None:
    """Six mint with a token and with what it minted, while it is revoked; rounds, until each race was seen."""
    refused = children = 0
    for _ in range(20):
        first = minted(core)
        made, started = [first], threading.Barrier(7)

        def mint(number: int, made: list[Caller] = made, started: threading.Barrier = started) -> int:
            started.wait(WAIT_S)
            for turn in range(12):
                try:
                    made.append(minted(core, made[(number * turn) % len(made)], name=f"{number}.{turn}"))
                except Unauthenticated:
                    return 1
                except Conflict:
                    continue
            return 0

        def end(first: Caller = first, made: list[Caller] = made, started: threading.Barrier = started) -> None:
            started.wait(WAIT_S)
            while len(made) < 6:
                pass
            revoke(core, first)

        with ThreadPoolExecutor(7) as pool:
            ending = pool.submit(end)
            refused += sum(pool.map(mint, range(6)))
            ending.result(WAIT_S)
        with core.database.transaction(SYSTEM_ORG, write=False) as tx:
            rows = tx.rows("SELECT token_id, minted_by FROM access_token WHERE org = :org AND revoked_at IS NULL")
        assert [dict(row) for row in rows] == []
        children += len(made) - 1
    assert refused > 20
    assert children > 100


@pytest.mark.slow
def test_uses_are_noted_while_tokens_are_revoked(core: Core) -> None:
    """Both change several rows at once, in whatever order they are asked to."""
    first = minted(core)
    family = [minted(core, first).principal for _ in range(30)]
    noted = 0

    def note(order: int) -> None:
        nonlocal noted
        for turn in range(15):
            payloads = [{"token_id": token_id, "at": core.clock() + turn} for token_id in family[::order]]
            system.tokens.note_uses(core.bench, SYSTEM_ORG, payloads)
            noted += 1

    with ThreadPoolExecutor(4) as pool:
        notes = [pool.submit(note, order) for order in (1, -1, 1)]
        ended = pool.submit(revoke, core, first)
        for one in notes:
            one.result(WAIT_S)
        assert ended.result(WAIT_S) == (30, 0)
    assert noted == 45
