"""search.query's tracker field: the verdict on a question about a defect, in a code scope alone."""

from dataclasses import replace
from typing import Any

import pytest
from tracker_kit import TRACE, WRITER, candidates, filled, of_user

from fakes import HTTP, LIMITS, Core, CoreOf, LateLegs
from loom import federation
from loom.access import namespaces
from loom.access.caller import LOCAL, Caller, Role
from loom.access.namespaces import NamespaceKind
from loom.ledger import embedding
from loom.planes import memory, tracker

DEFECT = f"Client.close throws NullPointerException\n{TRACE}"


@pytest.fixture(name="core")
def _core(core_of: CoreOf) -> Core:
    legs = [memory.LEG, tracker.LEG]
    return core_of([*memory.OPS, *tracker.OPS, *federation.ops(legs)], {**embedding.JOBS, **tracker.JOBS})


def bind(
    core: Core, name: str, repository: str, *, kind: NamespaceKind = "code", org: str = "dev", asked: str = ""
) -> None:
    with core.database.transaction(org, write=True) as tx:
        namespaces.touch(tx, name, tx.stamp(), kind)
        namespaces.bind(tx, name, repository, asked)


def scoped(core: Core, caller: Caller = WRITER) -> Core:
    """A code scope `app`, and its issues in the namespace `bugs`."""
    filled(core, namespace="bugs", caller=caller)
    bind(core, "bugs", "acme/app", kind="tracker")
    bind(core, "app", "git@github.com:Acme/App.git")
    return core


def ask(core: Core, query: str = DEFECT, *, caller: Caller = WRITER, **args: Any) -> dict[str, Any]:
    return core.call("search.query", caller=caller, query=query, **({"namespace": "app"} | args))


def test_a_known_defect_is_said_to_be_known(core: Core) -> None:
    verdict = ask(scoped(core))["tracker"]
    assert (verdict["verdict"], candidates(verdict)[0]) == ("duplicate", 1)
    assert verdict["candidates"][0]["evidence"]["frames"] == 1.0
    assert (verdict["repository"], verdict["namespace"], verdict["compared"]) == ("acme/app", "bugs", 6)


def test_a_question_about_no_defect_has_no_verdict(core: Core) -> None:
    assert "tracker" not in ask(scoped(core), "who wrote the client?")


@pytest.mark.parametrize("kind", ["memory", "tracker", "knowledge"])
def test_a_namespace_that_is_no_code_scope_has_no_verdict(core: Core, kind: NamespaceKind) -> None:
    scoped(core)
    bind(core, "other", "acme/app", kind=kind)
    assert "tracker" not in ask(core, namespace="other")
    assert "tracker" not in ask(core, namespace="nowhere")


def test_an_unbound_code_namespace_has_no_verdict(core: Core) -> None:
    scoped(core)
    with core.database.transaction("dev", write=True) as tx:
        namespaces.touch(tx, "loose", tx.stamp(), "code")
    assert "tracker" not in ask(core, namespace="loose")


def test_where_no_issues_are_kept_a_defect_is_new(core: Core) -> None:
    bind(core, "app", "acme/app")
    verdict = ask(core)["tracker"]
    assert (verdict["verdict"], verdict["candidates"], verdict["compared"]) == ("new", [], 0)


def test_the_tracker_that_the_code_names_comes_first(core: Core) -> None:
    scoped(core)
    core.call(
        "tracker.add", number=70, title="Client.close throws NullPointerException", namespace="own", caller=WRITER
    )
    bind(core, "app", "acme/app", asked="own")
    verdict = ask(core)["tracker"]
    assert (verdict["namespace"], candidates(verdict)) == ("own", [70])


def test_without_a_token_the_planes_own_orgs_are_asked(core: Core) -> None:
    bind(core, "app", "acme/app", org="code")
    items = [
        {"number": 1, "title": "Client.close throws NullPointerException", "url": "https://x.org/acme/app/issues/1"}
    ]
    core.dispatcher.call("tracker.import", LOCAL, HTTP, {"items": items})
    answer = core.dispatcher.call("search.query", LOCAL, HTTP, {"namespace": "app", "query": DEFECT})
    assert candidates(answer["tracker"]) == [1]
    assert "tracker" not in ask(core), "a token's org has neither"


def test_a_namespace_of_the_codes_name_serves_where_none_is_bound(core: Core) -> None:
    bind(core, "app", "acme/app", org="code")
    core.dispatcher.call("tracker.add", LOCAL, HTTP, {"namespace": "app", "number": 1, "title": "Crash on start"})
    answer = core.dispatcher.call("search.query", LOCAL, HTTP, {"namespace": "app", "query": "crash on start"})
    assert candidates(answer["tracker"]) == [1]


def test_a_token_is_not_shown_issues_beyond_its_namespaces(core: Core) -> None:
    scoped(core)
    caller = Caller("narrow", Role.VIEWER, {"org": "dev"}, frozenset({"app"}))
    assert ask(core, caller=caller)["tracker"]["candidates"] == []
    wide = Caller("wide", Role.VIEWER, {"org": "dev"}, frozenset({"app", "bugs"}))
    assert candidates(ask(core, caller=wide)["tracker"])[0] == 1


def test_a_token_of_one_user_is_not_shown_those_of_another(core: Core) -> None:
    scoped(core, of_user("ada"))
    assert ask(core, caller=of_user("bob", role=Role.VIEWER))["tracker"]["compared"] == 0
    assert candidates(ask(core, caller=of_user("ada"))["tracker"])[0] == 1


def test_at_most_ten_candidates_however_many_hits_are_asked_for(core: Core) -> None:
    items = [{"number": n, "title": "Crash on start"} for n in range(1, 40)]
    core.call("tracker.import", items=items, namespace="bugs", caller=WRITER)
    bind(core, "bugs", "acme/app", kind="tracker")
    bind(core, "app", "acme/app")
    assert len(ask(core, "crash on start", top_k=100)["tracker"]["candidates"]) == 10
    assert len(ask(core, "crash on start", top_k=3)["tracker"]["candidates"]) == 3


def test_without_an_embedder_the_verdict_stands_on_the_rest(core: Core) -> None:
    scoped(core)
    core.embedder.off.set()
    answer = ask(core)
    assert answer["tracker"]["verdict"] == "duplicate"
    assert answer["degraded"] == ["embedder"]


def test_a_tracker_that_is_late_is_absent_and_named(core: Core) -> None:
    scoped(core)
    slow = replace(core.dispatcher, pool=LateLegs(tracker.LEG.name), limits=replace(LIMITS, leg_timeout_s=0.01))
    answer = slow.call("search.query", WRITER, HTTP, {"namespace": "app", "agent": "a", "query": DEFECT})
    assert "tracker" not in answer
    assert answer["degraded"] == ["tracker"]
    assert answer["memory"]["results"] == []
