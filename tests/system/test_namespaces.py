"""namespace.create, .list, .update and .delete through the one call path."""

from typing import Any

import pytest

from fakes import Core, CoreOf
from loom import federation, system
from loom.access import namespaces
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Conflict, Denied, LoomError, NotFound, Rejected
from loom.jobs import outbox
from loom.ledger import embedding, indexing
from loom.planes import profile
from loom.retrieval import tokens
from loom.storage.indexes import Shelf


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(
        [*system.OPS, *profile.OPS, *federation.ops([profile.LEG])], embedding.JOBS, {**profile.LATE, **system.LATE}
    )


def names(core: Core, **args: Any) -> list[str]:
    return [space["name"] for space in core.call("namespace.list", **args)["namespaces"]]


def test_a_namespace_is_made_shown_and_described(core: Core) -> None:
    made = core.call("namespace.create", name="feature/x ü", kind="code", description="x")
    assert made == {
        "name": "feature/x ü",
        "kind": "code",
        "description": "x",
        "created_at": "2026-03-01T12:00:00Z",
        "last_version": 0,
        "repository": "",
        "tracker": "",
    }
    changed = core.call("namespace.update", name="feature/x ü", description="y")
    assert changed == made | {"description": "y"}
    assert core.call("namespace.list")["namespaces"] == [changed]
    assert names(core, kind="memory") == []
    with pytest.raises(Conflict):
        core.call("namespace.create", name="feature/x ü")
    with pytest.raises(NotFound):
        core.call("namespace.update", name="nope", description="y")


def test_writing_makes_a_namespace(core: Core) -> None:
    core.call("profile.set", label="x", value="y", namespace="new")
    assert names(core, kind="memory") == ["new"]


def test_deleting_leaves_nothing_behind(core: Core) -> None:
    for namespace in ("doomed", "kept"):
        core.call("profile.set", label="x", value="tea", namespace=namespace)
        core.call("profile.append", label="x", addition="more tea", namespace=namespace)
        core.call("profile.render", namespace=namespace)
    core.later.flush("dev")
    answer = core.call("namespace.delete", name="doomed", confirm="doomed")
    assert answer == {"name": "doomed", "items_deleted": 1}
    assert names(core) == ["kept"]
    assert core.call("profile.render", namespace="doomed")["section_count"] == 0
    assert core.call("search.query", query="tea", namespace="doomed", namespace_scope="this")["profile"] == {
        "sections": []
    }
    assert core.call("profile.render", namespace="kept")["section_count"] == 1
    with core.database.transaction("dev", write=False) as tx:
        assert outbox.waiting(tx) == 1
        assert len(tx.rows("SELECT version FROM ledger_version WHERE org = :org")) == 2
        [read] = tx.rows("SELECT namespace FROM profile_read WHERE org = :org")
        assert read["namespace"] == "kept"
        shelf = Shelf(indexing.PROFILE_SHELF, "doomed")
        assert list(tx.text.best(shelf, tokens.query("tea"), 5)) == []
        vector = core.embedder.embed_query("tea", 1)
        assert list(tx.vectors.best(shelf, core.embedder.space.fingerprint, vector, 5)) == []
    core.call("profile.set", label="x", value="anew", namespace="doomed")
    assert core.call("profile.render", namespace="doomed")["section_count"] == 1


@pytest.mark.parametrize(
    "token",
    [
        Caller("tok", Role.ADMIN, {"org": "dev"}, None, ReadScope.OWN_USER),
        Caller("tok", Role.ADMIN, {"org": "dev", "user_id": "ada"}),
        Caller("tok", Role.ADMIN, {"org": "dev", "agent": "codex"}),
        Caller("tok", Role.ADMIN, {"org": "dev", "session_id": "s1"}),
    ],
)
def test_a_token_that_does_not_reach_everybody_deletes_no_namespace(core: Core, token: Caller) -> None:
    core.call("profile.set", label="k", value="v", namespace="a", user_id="ben")
    with pytest.raises(Denied):
        core.call("namespace.delete", caller=token, name="a", confirm="a")
    assert core.call("profile.render", namespace="a", user_id="ben")["section_count"] == 1


def test_deleting_wants_the_name_twice(core: Core) -> None:
    core.call("namespace.create", name="x")
    for confirm in ("", "X"):
        with pytest.raises(Rejected) as raised:
            core.call("namespace.delete", name="x", confirm=confirm)
        assert raised.value.extras["field"] == "confirm"
    assert names(core) == ["x"]
    with pytest.raises(NotFound):
        core.call("namespace.delete", name="y", confirm="y")


def test_a_token_manages_its_own_namespaces(core: Core) -> None:
    core.call("namespace.create", name="a")
    core.call("namespace.create", name="b")
    caller = Caller("tok", Role.ADMIN, {"org": "dev"}, frozenset({"a"}))
    assert names(core, caller=caller, namespace="a") == ["a"]
    for op, args in (
        ("namespace.create", {"name": "c"}),
        ("namespace.update", {"name": "b", "description": "x"}),
        ("namespace.delete", {"name": "b", "confirm": "b"}),
    ):
        with pytest.raises(Denied):
            core.call(op, caller=caller, **(args | {"namespace": "a"}))
    with pytest.raises(Denied):
        core.call("namespace.delete", caller=Caller("tok", Role.WRITER, {"org": "dev"}), name="a", confirm="a")


@pytest.mark.parametrize(
    ("op", "field", "args"),
    [
        ("namespace.create", "name", {}),
        ("namespace.create", "name", {"name": "-"}),
        ("namespace.create", "name", {"name": "x" * 257}),
        ("namespace.create", "name", {"name": "a\nb"}),
        ("namespace.create", "kind", {"name": "x", "kind": "graph"}),
        ("namespace.create", "description", {"name": "x", "description": "x" * 5000}),
        ("namespace.list", "kind", {"kind": "graph"}),
        ("namespace.update", "description", {"name": "x"}),
    ],
)
def test_bad_input_names_its_field(core: Core, op: str, field: str, args: dict[str, Any]) -> None:
    with pytest.raises(LoomError) as raised:
        core.call(op, **args)
    assert (raised.value.status, raised.value.extras["field"]) == (422, field)


def test_namespaces_out_of_reach_take_no_places(core: Core) -> None:
    core.call("profile.set", label="x", value="green tea", namespace="mine")
    core.call("profile.set", label="x", value="green tea", namespace="also-mine")
    with core.database.transaction("dev", write=True) as tx:
        for number in range(namespaces.LISTED_MAX):
            namespaces.touch(tx, f"theirs-{number}", tx.stamp())
    reader = Caller("t", Role.VIEWER, {"org": "dev"}, frozenset({"mine", "also-mine"}))
    assert sorted(names(core, caller=reader, namespace="mine")) == ["also-mine", "mine"]
    answer = core.call("search.query", caller=reader, namespace="mine", query="green tea")
    assert [one["namespace"] for one in answer["profile"]["sections"]] == ["mine", "also-mine"]
    assert answer["namespaces_skipped"] == []
