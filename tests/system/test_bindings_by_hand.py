"""What a namespace stands for, set by an admin: its repository, and the tracker it asks."""

from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fakes import ORG, Clock, Core
from filled import CODE_ORG, TRACKER_ORG, whole_core
from loom.access.caller import Caller, Role
from loom.errors import Denied, LoomError, NotFound, Rejected
from loom.storage.interface import Database

DEFECT = "ValueError in Kettle.boil (kettle.py): the kettle crashes"


@pytest.fixture
def core(database: Database, clock: Clock, pool: Executor, tmp_path: Path) -> Core:
    return whole_core(tmp_path / "home", database, clock, pool)


def admin(*names: str, org: str = ORG, role: Role = Role.ADMIN) -> Caller:
    return Caller("t", role, {"org": org}, frozenset(names) if names else None)


def refused(core: Core, error: type[LoomError], op: str, **args: Any) -> str:
    where: dict[str, Any] = {"namespace": "-", **args}
    with pytest.raises(error) as caught:
        core.call(op, **where)
    return caught.value.message


def shown(core: Core, name: str, **args: Any) -> tuple[str, str]:
    [space] = [one for one in core.call("namespace.list", namespace="-", **args)["namespaces"] if one["name"] == name]
    return space["repository"], space["tracker"]


def with_issue(core: Core, namespace: str, number: int, org: str = ORG) -> None:
    core.call("tracker.add", org=org, namespace=namespace, number=number, title=DEFECT, body=DEFECT)


def verdict(core: Core, caller: Caller, namespace: str = "app") -> dict[str, Any]:
    where: dict[str, Any] = {"namespace": namespace, "namespace_scope": "this"}
    return core.call("search.query", caller=caller, query=DEFECT, **where)["tracker"]


def test_a_namespace_is_bound_shown_and_let_go(core: Core) -> None:
    with_issue(core, "bugs", 1)
    made = core.call(
        "namespace.create", caller=admin(), name="app", kind="code", repository="git@host.org:Acme/App.git"
    )
    assert (made["repository"], made["tracker"]) == ("acme/app", "")
    core.call("namespace.update", caller=admin(), name="app", tracker="bugs")
    assert shown(core, "app") == ("acme/app", "bugs")
    core.call("namespace.update", caller=admin(), name="app", description="only described")
    assert shown(core, "app") == ("acme/app", "bugs")
    core.call("namespace.update", caller=admin(), name="app", repository="acme/fork")
    assert shown(core, "app") == ("acme/fork", "bugs")
    core.call("namespace.update", caller=admin(), name="app", tracker="")
    assert shown(core, "app") == ("acme/fork", "")
    core.call("namespace.update", caller=admin(), name="app", tracker="bugs")
    core.call("namespace.update", caller=admin(), name="app", repository="")
    assert shown(core, "app") == ("", "")
    core.call("namespace.update", caller=admin(), name="bugs", repository="acme/app")
    assert shown(core, "bugs") == ("acme/app", "")


def test_what_is_bound_wrongly_is_refused_and_changes_nothing(core: Core) -> None:
    with_issue(core, "bugs", 1)
    for kind in ("memory", "knowledge", "code"):
        core.call("namespace.create", name=kind, kind=kind)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"name": "memory", "repository": "acme/app"}, "repository: a namespace of kind memory"),
        ({"name": "knowledge", "repository": "acme/app"}, "repository: a namespace of kind knowledge"),
        ({"name": "memory", "tracker": "bugs"}, "tracker: only a namespace of kind code"),
        ({"name": "bugs", "repository": "acme/app", "tracker": "bugs"}, "tracker: only a namespace of kind code"),
        ({"name": "code", "tracker": "bugs"}, "tracker: bind the namespace to a repository"),
        ({"name": "code", "repository": "acme/app", "tracker": "memory"}, "tracker: there is no namespace of kind"),
        ({"name": "code", "repository": "acme/app", "tracker": "nowhere"}, "tracker: there is no namespace of kind"),
        ({"name": "code", "repository": "https://"}, "repository: should be"),
        ({"name": "code", "repository": "acme/a\tb"}, "repository: control characters"),
        ({"name": "code", "repository": "x" * 513}, "repository: "),
        ({"name": "code", "repository": 7}, "repository: "),
    ]
    for args, reason in bad:
        assert refused(core, Rejected, "namespace.update", caller=admin(), **args).startswith(reason), args
        assert shown(core, args["name"]) == ("", "")
    message = refused(core, Rejected, "namespace.create", caller=admin(), name="new", repository="acme/app")
    assert message.startswith("repository: a namespace of kind memory")
    assert refused(core, NotFound, "namespace.update", caller=admin(), name="nope", repository="acme/app")
    assert "new" not in [one["name"] for one in core.call("namespace.list")["namespaces"]]


def test_only_an_admin_binds_and_only_what_the_token_reaches(core: Core) -> None:
    with_issue(core, "bugs", 1)
    core.call("namespace.create", name="app", kind="code")
    for change in ({"repository": "acme/app"}, {"tracker": "bugs"}, {"repository": ""}):
        writer = admin(role=Role.WRITER)
        assert "admins only" in refused(core, Denied, "namespace.update", caller=writer, name="app", **change)
    narrow = admin("app")
    assert "tracker: this token does not reach" in refused(
        core, Denied, "namespace.update", caller=narrow, name="app", repository="acme/app", tracker="bugs"
    )
    assert refused(core, Denied, "namespace.update", caller=admin("other"), name="app", repository="acme/app")
    assert shown(core, "app") == ("", "")
    both = admin("app", "bugs")
    core.call("namespace.update", caller=both, namespace="-", name="app", repository="acme/app", tracker="bugs")
    assert shown(core, "app", caller=narrow) == ("acme/app", "")
    assert shown(core, "app", caller=admin("app", "bugs")) == ("acme/app", "bugs")


def test_a_bound_tracker_answers_only_who_reaches_it(core: Core) -> None:
    for number, name in enumerate(("bugs", "app-bugs"), start=1):
        with_issue(core, name, number)
    core.call("namespace.update", caller=admin(), name="app-bugs", repository="acme/app")
    core.call("namespace.create", caller=admin(), name="app", kind="code", repository="acme/app", tracker="bugs")
    assert verdict(core, admin())["namespace"] == "bugs"
    assert verdict(core, admin("app", "bugs", "app-bugs"))["namespace"] == "bugs"
    assert verdict(core, admin("app", "app-bugs"))["namespace"] == "app-bugs"
    alone = verdict(core, admin("app"))
    assert (alone["verdict"], alone["candidates"]) == ("new", [])
    core.call("namespace.update", caller=admin(), name="app", tracker="")
    assert verdict(core, admin())["namespace"] == "app-bugs"
    core.call("namespace.update", caller=admin(), name="app", repository="")
    assert "tracker" not in core.call("search.query", caller=admin(), query=DEFECT, namespace="app")


def test_without_a_token_the_tracker_is_looked_for_in_its_own_org(core: Core) -> None:
    with_issue(core, "bugs", 1, org=TRACKER_ORG)
    made = core.call("namespace.create", org=CODE_ORG, name="app", kind="code", repository="acme/app", tracker="bugs")
    assert made["tracker"] == "bugs"
    assert core.call("search.query", namespace="app", query=DEFECT)["tracker"]["namespace"] == "bugs"


def test_what_an_admin_bound_is_not_unbound_by_another_index(core: Core, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("def a(): ...\n")
    core.call("code.index", namespace="app", source=str(tmp_path / "repo"))
    core.call("namespace.update", name="app", repository="acme/fork")
    core.call("code.index", namespace="app")
    assert shown(core, "app") == ("acme/fork", "")


def test_bindings_set_at_once_are_never_mixed(core: Core) -> None:
    for name in ("one", "two"):
        with_issue(core, name, 1)
    core.call("namespace.create", name="app", kind="code")
    pairs = {("acme/one", "one"), ("acme/two", "two")}
    with ThreadPoolExecutor(4) as pool:
        calls = [
            pool.submit(
                core.call, "namespace.update", caller=admin(), name="app", repository=repository, tracker=tracker
            )
            for repository, tracker in sorted(pairs) * 8
        ]
        answers = {(done["repository"], done["tracker"]) for done in (call.result() for call in calls)}
    assert answers <= pairs
    assert shown(core, "app") in pairs
