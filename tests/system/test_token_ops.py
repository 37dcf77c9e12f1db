"""token.mint, token.list and token.revoke through the one call path."""

from typing import Any

import pytest

from fakes import Core, CoreOf
from loom import system
from loom.access.caller import Caller, ReadScope, Role
from loom.access.tokens import Authenticator
from loom.errors import Denied, LoomError, NotFound, Rejected, Unauthenticated
from loom.storage.interface import SYSTEM_ORG


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(system.OPS, {}, system.LATE)


def enter(core: Core, token: str | None) -> Caller:
    authenticator = Authenticator(
        core.database,
        core.clock,
        loopback=True,
        note_use=lambda token_id, at: system.note_use(core.later, token_id, at),
    )
    return authenticator.authenticate(None if token is None else f"Bearer {token}")


def admin(core: Core, **args: Any) -> Caller:
    return enter(core, core.call("token.mint", name="admin", role="admin", **args)["token"])


def admin_by_local(core: Core) -> Caller:
    """An admin whose token does not end, minted by who can read the store's files."""
    return enter(core, core.call("token.mint", name="endless", role="admin")["token"])


def test_a_minted_token_is_its_caller(core: Core) -> None:
    answer = core.call(
        "token.mint",
        name="ada's laptop",
        role="viewer",
        pins={"user_id": "ada", "agent": "-", "session_id": None},
        namespaces=["b", "a"],
        read_scope="own_user",
        ttl_days=1,
    )
    assert (answer["org"], answer["pins"]) == ("dev", {"org": "dev", "user_id": "ada"})
    assert (answer["role"], answer["namespaces"], answer["read_scope"]) == ("viewer", ["a", "b"], "own_user")
    assert answer["expires_at"] == "2026-03-02T12:00:00Z"
    assert enter(core, answer["token"]) == Caller(
        answer["token_id"],
        Role.VIEWER,
        {"org": "dev", "user_id": "ada"},
        frozenset({"a", "b"}),
        ReadScope.OWN_USER,
    )
    with pytest.raises(Unauthenticated):
        enter(core, None)


def test_a_token_is_shown_once(core: Core) -> None:
    made = core.call("token.mint", name="x")
    secret = made.pop("token")
    [shown] = core.call("token.list")["tokens"]
    assert shown == made
    assert secret not in str(shown)
    with pytest.raises(Rejected):
        core.call("token.mint", name="x", key="k")


def test_the_last_use_is_shown(core: Core) -> None:
    made = core.call("token.mint", name="x")
    core.clock.step(minutes=5)
    enter(core, made["token"])
    core.later.flush(SYSTEM_ORG)
    assert core.call("token.list")["tokens"][0]["last_used_at"] == "2026-03-01T12:05:00Z"


@pytest.mark.parametrize(
    "args",
    [
        {"pins": {"org": "other"}},
        {"pins": {"user_id": "bob"}},
        {"namespaces": ["a", "c"]},
        {"read_scope": "namespace"},
    ],
)
def test_a_token_reaches_no_further_than_its_minter(core: Core, args: dict[str, Any]) -> None:
    minter = admin(core, pins={"user_id": "ada"}, namespaces=["a", "b"], read_scope="own_user")
    with pytest.raises(Denied):
        core.call("token.mint", caller=minter, namespace="-", name="x", **args)
    with pytest.raises(Denied):
        core.call("token.mint", caller=enter(core, core.call("token.mint", name="w")["token"]), name="x")


def test_what_is_left_out_is_the_minters_own(core: Core) -> None:
    minter = admin(core, pins={"user_id": "ada"}, namespaces=["a", "b"], read_scope="own_user")
    made = core.call(
        "token.mint", caller=minter, namespace="a", name="x", role="admin", pins={"agent": "codex"}, namespaces=["a"]
    )
    assert made["pins"] == {"org": "dev", "user_id": "ada", "agent": "codex"}
    assert (made["namespaces"], made["read_scope"]) == (["a"], "own_user")
    assert core.call("token.mint", caller=minter, namespace="-", name="y")["namespaces"] == ["a", "b"]


def test_a_token_does_not_outlive_its_minter(core: Core) -> None:
    boss = admin(core, ttl_days=2)
    longer: list[dict[str, Any]] = [{"ttl_days": 3}, {"expires_at": "2026-03-03T12:00:00.000001Z"}]
    for args in longer:
        with pytest.raises(Denied, match="cannot outlive"):
            core.call("token.mint", caller=boss, name="x", **args)
    assert core.call("token.mint", caller=boss, name="same", ttl_days=2)["expires_at"] == "2026-03-03T12:00:00Z"
    assert core.call("token.mint", caller=boss, name="less", ttl_days=1)["expires_at"] == "2026-03-02T12:00:00Z"
    child = core.call("token.mint", caller=boss, name="left out", role="admin")
    assert child["expires_at"] == "2026-03-03T12:00:00Z"
    core.clock.step(days=1)
    grandchild = core.call("token.mint", caller=enter(core, child["token"]), name="the child's")
    assert grandchild["expires_at"] == "2026-03-03T12:00:00Z"
    endless = admin_by_local(core)
    assert core.call("token.mint", caller=endless, name="endless")["expires_at"] is None
    core.clock.step(days=1)
    for made in (child, grandchild):
        with pytest.raises(Unauthenticated):
            enter(core, made["token"])


def test_tokens_of_other_orgs_are_out_of_sight(core: Core) -> None:
    other = core.call("token.mint", name="other", pins={"org": "acme"})
    inside = admin(core)
    shown = core.call("token.list", caller=inside)["tokens"]
    assert [token["org"] for token in shown] == ["dev"]
    with pytest.raises(NotFound):
        core.call("token.revoke", caller=inside, token_id=other["token_id"])
    enter(core, other["token"])


def test_a_revoked_token_ends_and_stays_listed(core: Core) -> None:
    made = core.call("token.mint", name="x")
    first = core.call("token.revoke", token_id=made["token_id"])
    core.clock.step(hours=1)
    assert core.call("token.revoke", token_id=made["token_id"]) == first
    with pytest.raises(Unauthenticated):
        enter(core, made["token"])
    assert core.call("token.list")["tokens"][0]["revoked_at"] == first["revoked_at"]
    with pytest.raises(Unauthenticated):
        enter(core, None)


@pytest.mark.parametrize(
    ("field", "args"),
    [
        ("name", {"name": ""}),
        ("name", {"name": "a\x07b"}),
        ("role", {"role": "owner"}),
        ("pins", {"pins": {"tenant": "x"}}),
        ("pins", {"pins": {"agent": "*"}}),
        ("pins", {"pins": {"org": "\x01system"}}),
        ("namespaces", {"namespaces": []}),
        ("namespaces", {"namespaces": [""]}),
        ("read_scope", {"read_scope": "all"}),
        ("expires_at", {"expires_at": "2026-03-01T11:00:00Z"}),
        ("expires_at", {"expires_at": "2026-04-01T11:00:00"}),
        ("ttl_days", {"ttl_days": 0}),
        ("ttl_days", {"ttl_days": 1, "expires_at": "2026-04-01T11:00:00Z"}),
    ],
)
def test_bad_input_names_its_field(core: Core, field: str, args: dict[str, Any]) -> None:
    sent: dict[str, Any] = {"name": "x", **args}
    with pytest.raises(LoomError) as raised:
        core.call("token.mint", **sent)
    assert raised.value.status == 422
    assert str(raised.value.extras["field"]).split(".")[0] == field


def test_only_admins_manage_tokens(core: Core) -> None:
    writer = Caller("tok", Role.WRITER, {"org": "dev"})
    for op, args in (("token.mint", {"name": "x"}), ("token.list", {}), ("token.revoke", {"token_id": "x"})):
        with pytest.raises(Denied):
            core.call(op, caller=writer, **args)
