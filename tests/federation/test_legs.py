"""Planes asked side by side, in each org that they read."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fakes import LIMITS, Core, CoreOf
from loom.access.caller import Caller, ReadScope, Role
from loom.canonical import Json
from loom.federation.legs import ask
from loom.ledger.rules import Reader
from loom.ops.spec import Prepare
from loom.planes.leg import CodeScope, Leg, Question, Section
from loom.storage.interface import StoreError, Transaction

WAIT_S = 60.0
CODE_ORG = "code"
FOUND: dict[str, list[Json]] = {
    "dev": [{"uri": "notes", "similarity": 0.4}],
    CODE_ORG: [{"uri": "readme", "similarity": 0.9}],
}


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    made = core_of([])
    for org in FOUND:
        with made.database.transaction(org, write=True) as tx:
            tx.stamp()
    return made


def prepare(core: Core, pool: ThreadPoolExecutor) -> Prepare:
    inside = core.dispatcher
    caller = Caller("t", Role.VIEWER, {}, None, ReadScope.NAMESPACE)
    return Prepare(
        caller, ReadScope.NAMESPACE, core.clock(), inside.embedder, core.database, pool, LIMITS, inside.later
    )


def question(core: Core) -> Question:
    return Question(
        namespace="app",
        namespaces=("app", "mine"),
        agent="-",
        reader=Reader(ReadScope.NAMESPACE, "-", "-"),
        query="tea",
        vector=None,
        space="",
        random_cosine=0.0,
        across_cosine=0.0,
        question_cosine=0.0,
        top_k=5,
        tags=(),
        recipe="",
        bodies="excerpt",
        explain=False,
        page="",
        now_us=core.clock(),
        org="dev",
        scope=CodeScope("acme/app", CODE_ORG, "app", "dev", ""),
    )


def test_both_orgs_are_read_at_once_and_the_nearest_come_first(core: Core, pool: ThreadPoolExecutor) -> None:
    both = threading.Barrier(len(FOUND), timeout=WAIT_S)
    asked: dict[str, tuple[str, ...]] = {}

    def answer(tx: Transaction, one: Question) -> Section:
        asked[tx.org] = one.namespaces
        both.wait()
        return Section({"results": list(FOUND[tx.org])}, 1)

    leg = Leg("knowledge", answer, scoped=True)
    found = ask(prepare(core, pool), [leg], question(core), time.monotonic() + WAIT_S)
    assert found.failed == ()
    assert asked == {"dev": ("app", "mine"), CODE_ORG: ("app",)}
    section = found.answers["knowledge"].section
    assert (section.hits, section.body["results"]) == (2, [*FOUND[CODE_ORG], *FOUND["dev"]])


def test_what_one_org_gave_is_shown_where_the_other_failed(core: Core, pool: ThreadPoolExecutor) -> None:
    def answer(tx: Transaction, one: Question) -> Section:
        del one
        if tx.org == CODE_ORG:
            raise StoreError("no disk")
        return Section({"results": list(FOUND[tx.org])}, 1)

    leg = Leg("knowledge", answer, scoped=True)
    found = ask(prepare(core, pool), [leg], question(core), time.monotonic() + WAIT_S)
    assert found.failed == ("knowledge",)
    assert found.answers["knowledge"].section.body["results"] == FOUND["dev"]


def test_a_leg_without_an_org_is_not_asked(core: Core, pool: ThreadPoolExecutor) -> None:
    def answer(tx: Transaction, one: Question) -> Section:
        raise AssertionError((tx.org, one.org))

    leg = Leg("tracker", answer, org_of=lambda one: one.org if one.query == "crash" else None)
    found = ask(prepare(core, pool), [leg], question(core), time.monotonic() + WAIT_S)
    assert (found.answers, found.failed) == ({}, ())
