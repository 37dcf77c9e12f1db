"""Tokens: who a secret stands for, until when, and when tokenless access ends."""

import dataclasses
from typing import Any

import pytest

from fakes import Clock
from loom.access import tokens
from loom.access.caller import LOCAL, Caller, ReadScope, Role
from loom.access.tokens import TOKEN, Authenticator, covers
from loom.errors import Unauthenticated, Unavailable
from loom.storage.interface import SYSTEM_ORG, Database

ADA = Caller("", Role.WRITER, {"org": "dev", "user_id": "ada"}, frozenset({"b", "a"}), ReadScope.OWN_USER)


class Gate:
    """An authenticator over a store, and the uses it noted."""

    def __init__(self, database: Database, clock: Clock, *, loopback: bool = True) -> None:
        self.database, self.clock = database, clock
        self.noted: list[tuple[str, int]] = []
        self.authenticator = Authenticator(
            database, clock, loopback=loopback, note_use=lambda token_id, at: self.noted.append((token_id, at))
        )

    def mint(self, caller: Caller = ADA, expires_at: int | None = None) -> tuple[str, str]:
        with self.database.transaction(SYSTEM_ORG, write=True) as tx:
            text, token = tokens.mint(tx, caller, "for a test", self.clock(), expires_at, None)
        return text, token.caller.principal

    def enter(self, text: str) -> Caller:
        return self.authenticator.authenticate(f"Bearer {text}")


@pytest.fixture
def gate(database: Database, clock: Clock) -> Gate:
    return Gate(database, clock)


def test_a_token_stands_for_its_caller(gate: Gate) -> None:
    text, token_id = gate.mint()
    assert TOKEN.fullmatch(text)
    assert gate.enter(text) == dataclasses.replace(ADA, principal=token_id)
    assert gate.authenticator.authenticate(f"bearer  {text} ").principal == token_id


def test_the_store_holds_no_secret(gate: Gate) -> None:
    text, token_id = gate.mint()
    with gate.database.transaction(SYSTEM_ORG, write=False) as tx:
        [row] = tx.rows("SELECT * FROM access_token WHERE org = :org")
    assert row["token_id"] == token_id
    assert text.rpartition("_")[2] not in str(dict(row))
    assert text[-43:] not in str(dict(row))


def test_two_tokens_differ(gate: Gate) -> None:
    assert gate.mint()[0][-43:] != gate.mint()[0][-43:]


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer ", "Basic abc", "Bearer nonsense", "Bearer loom_00_x", "loom", "é" * 500]
)
def test_what_is_no_token_is_refused(gate: Gate, authorization: str) -> None:
    with pytest.raises(Unauthenticated):
        gate.authenticator.authenticate(authorization)


def test_a_wrong_secret_and_a_wrong_id_are_refused_alike(gate: Gate) -> None:
    text, _ = gate.mint()
    other = ("A" if text[-1] != "A" else "B").join([text[:-1], ""])
    messages: set[str] = set()
    for wrong in (other, f"loom_{'0' * 12}_{text[-43:]}"):
        with pytest.raises(Unauthenticated) as raised:
            gate.enter(wrong)
        messages.add(raised.value.message)
        assert text[-42:-1] not in raised.value.message
    assert len(messages) == 1


def test_a_token_ends_at_its_time(gate: Gate) -> None:
    text, _ = gate.mint(expires_at=gate.clock() + 2_000_000)
    gate.clock.step(seconds=1)
    gate.enter(text)
    gate.clock.step(seconds=1)
    with pytest.raises(Unauthenticated, match="expired"):
        gate.enter(text)


def test_a_revoked_token_is_refused_at_once(gate: Gate) -> None:
    text, token_id = gate.mint()
    gate.enter(text)
    with gate.database.transaction(SYSTEM_ORG, write=True) as tx:
        tokens.revoke(tx, [token_id], gate.clock())
    with pytest.raises(Unauthenticated, match="revoked"):
        gate.enter(text)


def test_the_first_token_ends_calls_without_one_for_good(gate: Gate) -> None:
    assert gate.authenticator.authenticate(None) is LOCAL
    _, token_id = gate.mint()
    with pytest.raises(Unauthenticated):
        gate.authenticator.authenticate(None)
    with gate.database.transaction(SYSTEM_ORG, write=True) as tx:
        tokens.revoke(tx, [token_id], gate.clock())
    with pytest.raises(Unauthenticated):
        gate.authenticator.authenticate(None)


def test_a_server_that_others_reach_always_wants_a_token(database: Database, clock: Clock) -> None:
    with pytest.raises(Unauthenticated):
        Gate(database, clock, loopback=False).authenticator.authenticate(None)


def test_uses_are_noted_once_a_minute(gate: Gate) -> None:
    text, token_id = gate.mint()
    first = gate.clock()
    for _ in range(3):
        gate.enter(text)
        gate.clock.step(seconds=20)
    gate.enter(text)
    assert gate.noted == [(token_id, first), (token_id, first + 60_000_000)]


def test_a_use_that_another_process_noted_is_not_noted_again(gate: Gate) -> None:
    text, token_id = gate.mint()
    with gate.database.transaction(SYSTEM_ORG, write=True) as tx:
        tokens.used(tx, token_id, gate.clock())
        tokens.used(tx, token_id, gate.clock() - 5)
    gate.clock.step(seconds=30)
    gate.enter(text)
    assert gate.noted == []


def test_a_store_that_fails_is_not_a_bad_token(gate: Gate) -> None:
    text, _ = gate.mint()
    gate.database.close()
    for authorization in (None, f"Bearer {text}"):
        with pytest.raises(Unavailable):
            gate.authenticator.authenticate(authorization)


@pytest.mark.parametrize(
    ("change", "inside"),
    [
        ({}, True),
        ({"role": Role.VIEWER}, True),
        ({"role": Role.ADMIN}, False),
        ({"pins": {"org": "dev"}}, False),
        ({"pins": {"org": "dev", "user_id": "bob"}}, False),
        ({"pins": {"org": "dev", "user_id": "ada", "agent": "x"}}, True),
        ({"namespaces": None}, False),
        ({"namespaces": frozenset({"a"})}, True),
        ({"namespaces": frozenset({"a", "c"})}, False),
        ({"read_scope": ReadScope.OWN_SESSION}, True),
        ({"read_scope": ReadScope.NAMESPACE}, False),
    ],
)
def test_reach_is_compared_part_by_part(change: dict[str, Any], inside: bool) -> None:
    assert covers(ADA, dataclasses.replace(ADA, **change)) is inside
    assert covers(LOCAL, dataclasses.replace(ADA, **change))
