"""search.query: sections side by side, what fails left out, what is held back counted."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from fakes import LIMITS, BegunLegs, Core, CoreOf, LateLegs
from loom import federation
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import LoomError, NotFound, Rejected
from loom.ledger import embedding
from loom.models.interface import EmbedderFailed
from loom.ops.spec import Limits
from loom.planes import profile
from loom.planes.leg import Leg, Question, Section
from loom.storage.interface import Database, Raced, StoreError, Transaction

WAIT_S = 60.0


class FakeLeg:
    """A plane that answers, fails or waits as it is told; keeps the questions."""

    def __init__(self, name: str, section: Section | None = None) -> None:
        self.name = name
        self.section = section or Section({"results": []}, 0)
        self.error: Exception | None = None
        self.questions: list[Question] = []

    def ask(self, tx: Transaction, question: Question) -> Section:
        assert tx.org == "dev"
        self.questions.append(question)
        if self.error is not None:
            raise self.error
        return self.section

    @property
    def leg(self) -> Leg:
        return Leg(self.name, self.ask)


Made = Callable[..., Core]


@pytest.fixture(name="made")
def _made(core_of: CoreOf) -> Made:
    def make(*fakes: FakeLeg, limits: Limits | None = None) -> Core:
        legs = [*(fake.leg for fake in fakes), profile.LEG]
        core = core_of([*profile.OPS, *federation.ops(legs)], embedding.JOBS, profile.LATE)
        return replace(core, dispatcher=replace(core.dispatcher, limits=limits or LIMITS))

    return make


def query(core: Core, text: str = "tea", **args: Any) -> dict[str, Any]:
    return core.call("search.query", query=text, **args)


def test_every_section_is_there_without_its_plane(made: Made) -> None:
    assert query(made()) == {
        "memory": {"results": [], "reader_block": "", "next_page": ""},
        "knowledge": {"results": []},
        "profile": {"sections": []},
        "conversations": {"results": []},
        "namespaces_skipped": [],
        "degraded": [],
    }


def test_each_plane_gives_its_section(made: Made) -> None:
    memory = FakeLeg("memory", Section({"results": [{"memory_key": "k"}], "next_page": "p"}, 1))
    tracker = FakeLeg("tracker", Section({"verdict": "new"}, 0))
    core = made(memory, tracker)
    core.call("profile.set", label="drinks", value="green tea")
    answer = query(core)
    assert answer["memory"] == {"results": [{"memory_key": "k"}], "next_page": "p"}
    assert answer["tracker"] == {"verdict": "new"}
    assert [section["label"] for section in answer["profile"]["sections"]] == ["drinks"]


def test_the_question_carries_what_the_call_says(made: Made) -> None:
    memory = FakeLeg("memory")
    core = made(memory)
    query(
        core,
        "x" * 10_001,
        top_k=7,
        tags=["a"],
        recipe="fast",
        bodies="full",
        explain=True,
        page="p",
        user_id="ada",
        session_id="s",
        read_scope="own_user",
    )
    [asked] = memory.questions
    assert (asked.namespace, asked.namespaces, asked.agent) == ("local", ("local",), "claude")
    assert (len(asked.query), asked.top_k, asked.tags, asked.recipe) == (10_000, 7, ("a",), "fast")
    assert (asked.bodies, asked.explain, asked.page, asked.now_us) == ("full", True, "p", core.clock())
    assert (asked.reader.scope, asked.reader.user_id, asked.reader.session_id) == (ReadScope.OWN_USER, "ada", "s")
    assert asked.vector is not None
    assert asked.space == core.embedder.space.fingerprint


def test_the_token_is_the_ceiling(made: Made) -> None:
    memory = FakeLeg("memory")
    core = made(memory)
    caller = Caller("tok", Role.VIEWER, {"org": "dev", "user_id": "ada"}, frozenset({"local"}), ReadScope.OWN_SESSION)
    query(core, caller=caller)
    assert memory.questions[0].reader.scope is ReadScope.OWN_SESSION


@pytest.mark.parametrize("error", [NotFound("x"), StoreError("x"), EmbedderFailed("x"), KeyError("stored text")])
def test_a_plane_that_fails_is_left_out_and_named(
    made: Made, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    memory = FakeLeg("memory")
    memory.error = error
    core = made(memory)
    core.call("profile.set", label="drinks", value="green tea")
    answer = query(core)
    assert answer["degraded"] == ["memory"]
    assert answer["memory"]["results"] == []
    assert len(answer["profile"]["sections"]) == 1
    assert "stored text" not in caplog.text
    assert ("KeyError" in caplog.text) is isinstance(error, KeyError)


def test_a_plane_that_is_late_is_left_out_and_named(made: Made) -> None:
    core = made(FakeLeg("memory"), limits=replace(LIMITS, leg_timeout_s=0.01))
    core.call("profile.set", label="drinks", value="green tea")
    answer = query(replace(core, dispatcher=replace(core.dispatcher, pool=LateLegs("memory"))))
    assert answer["degraded"] == ["memory"]
    assert answer["memory"]["results"] == []
    assert len(answer["profile"]["sections"]) == 1


def test_a_leg_that_overruns_ends_by_itself_and_its_answer_is_nobodys(made: Made) -> None:
    """Its transaction is open for as long as it takes, in a thread of the pool."""
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    class Overrunning(FakeLeg):
        def ask(self, tx: Transaction, question: Question) -> Section:
            begun.set()
            assert go_on.wait(WAIT_S)
            assert tx.row("SELECT :org AS org") == {"org": "dev"}
            over.set()
            return super().ask(tx, question)

    memory = Overrunning("memory", Section({"results": [{"memory_key": "late"}]}, 1))
    core = made(memory)
    core.call("profile.set", label="drinks", value="green tea")
    pool = BegunLegs(core.dispatcher.pool, "memory", begun)
    hasty = replace(core.dispatcher, pool=pool, limits=replace(LIMITS, leg_timeout_s=0.01))
    try:
        answer = query(replace(core, dispatcher=hasty))
        assert "memory" in answer["degraded"]
        assert answer["memory"]["results"] == []
        assert not over.is_set()
        core.call("profile.set", label="food", value="tea cakes")
    finally:
        go_on.set()
    assert over.wait(WAIT_S)
    answer = query(core)
    assert answer["degraded"] == []
    assert answer["memory"]["results"] == [{"memory_key": "late"}]
    assert len(answer["profile"]["sections"]) == 2


def test_planes_are_asked_side_by_side(made: Made) -> None:
    both_run = threading.Barrier(2)

    class Meeting(FakeLeg):
        def ask(self, tx: Transaction, question: Question) -> Section:
            both_run.wait(WAIT_S)
            return super().ask(tx, question)

    assert query(made(Meeting("memory"), Meeting("knowledge")))["degraded"] == []


def test_without_an_embedder_words_are_searched(made: Made) -> None:
    memory = FakeLeg("memory")
    core = made(memory)
    core.call("profile.set", label="drinks", value="green tea")
    core.embedder.off.set()
    answer = query(core)
    assert answer["degraded"] == ["embedder"]
    assert [section["match"] for section in answer["profile"]["sections"]] == ["words"]
    assert memory.questions[0].vector is None


def test_a_planes_own_losses_are_named_once(made: Made) -> None:
    memory = FakeLeg("memory", Section({"results": []}, 0, degraded=("rerank", "embedder")))
    core = made(memory)
    core.embedder.off.set()
    assert query(core)["degraded"] == ["embedder", "rerank"]


def test_what_is_held_back_is_counted_with_the_reason(made: Made) -> None:
    memory = FakeLeg("memory", Section({"results": []}, 0, withheld=3, reason="unlikely to answer"))
    knowledge = FakeLeg("knowledge", Section({"results": []}, 0, withheld=1, reason="too far"))
    core = made(memory, knowledge, FakeLeg("conversations"))
    assert query(core)["withheld"] == {"memory": 3, "knowledge": 1, "reason": "unlikely to answer; too far"}
    assert "withheld" not in query(core, explain=True)


def test_explain_shows_how_long_each_plane_took(made: Made) -> None:
    core = made(FakeLeg("memory"))
    assert "timings_ms" not in query(core)
    timings_ms = query(core, explain=True)["timings_ms"]
    assert set(timings_ms) == {"memory", "profile"}
    assert all(took_ms >= 0 for took_ms in timings_ms.values())


def test_a_wrong_page_is_the_callers_fault(made: Made) -> None:
    memory = FakeLeg("memory")
    memory.error = Rejected("page: no such page", field="page")
    for core in (made(memory), made()):
        with pytest.raises(Rejected) as raised:
            query(core, page="nonsense")
        assert raised.value.extras["field"] == "page"


def test_all_mine_reads_the_callers_namespaces_and_names_the_rest(made: Made) -> None:
    memory = FakeLeg("memory")
    core = made(memory, limits=replace(LIMITS, fanout_namespaces_max=3))
    for number in range(5):
        core.clock.step(seconds=1)
        core.call("profile.set", label="x", value="tea", namespace=f"n{number}")
    answer = query(core)
    assert memory.questions[-1].namespaces == ("local", "n4", "n3")
    assert answer["namespaces_skipped"] == ["n2", "n1", "n0"]
    assert len(answer["profile"]["sections"]) == 2
    answer = query(core, namespace_scope="this", namespace="n1")
    assert memory.questions[-1].namespaces == ("n1",)
    assert answer["namespaces_skipped"] == []
    caller = Caller("tok", Role.VIEWER, {"org": "dev"}, frozenset({"local", "n1"}))
    answer = query(core, caller=caller)
    assert memory.questions[-1].namespaces == ("local", "n1")
    assert answer["namespaces_skipped"] == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", ""),
        ("query", " \n\t\u3000"),
        ("query", 7),
        ("top_k", 0),
        ("top_k", 101),
        ("top_k", "5"),
        ("tags", "tea"),
        ("tags", [""]),
        ("namespace_scope", "mine"),
        ("recipe", "best"),
        ("bodies", "some"),
        ("explain", "yes"),
        ("page", "x" * 5000),
    ],
)
def test_bad_input_names_its_field(made: Made, field: str, value: Any) -> None:
    args: dict[str, Any] = {"query": "x", field: value}
    with pytest.raises(LoomError) as raised:
        made().call("search.query", **args)
    assert raised.value.status == 422
    assert str(raised.value.extras["field"]).split(".")[0] == field


def test_a_search_that_shows_sections_is_a_read_of_the_profile(made: Made) -> None:
    core = made()
    core.call("profile.set", label="drinks", value="green tea")
    query(core, "quark")
    assert core.call("profile.activity")["entries"] == []
    query(core, agent="codex")
    [entry] = core.call("profile.activity")["entries"]
    assert (entry["agent"], entry["read_count"], entry["last_op"]) == ("codex", 1, "search.query")


def test_another_org_finds_nothing(made: Made) -> None:
    core = made()
    core.call("profile.set", label="drinks", value="green tea")
    assert query(core, org="other")["profile"]["sections"] == []


@pytest.mark.parametrize("names", [("memory", "memory"), ("profile",), ("nonsense",)])
def test_planes_are_the_sections_of_the_answer(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="sections"):
        federation.ops([*(FakeLeg(name).leg for name in names), profile.LEG])


class Lagging:
    """A store whose replica fails the first reads that may lag."""

    def __init__(self, inner: Database, failures: int) -> None:
        self._inner = inner
        self.failures = failures
        self._mutex = threading.Lock()

    @contextmanager
    def transaction(
        self, org: str, *, write: bool, may_lag: bool = False, turn: Sequence[str] = ()
    ) -> Generator[Transaction]:
        with self._mutex:
            fails = may_lag and self.failures > 0
            self.failures -= int(fails)
        with self._inner.transaction(org, write=write, turn=turn) as tx:
            yield tx
        if fails:
            raise Raced("the replica failed")


@pytest.mark.parametrize("scope", ["this", "all_mine"])
def test_a_replica_that_fails_once_costs_no_section(made: Made, scope: str) -> None:
    core = made(FakeLeg("memory", Section({"results": [{"memory_key": "k"}]}, 1)))
    core.call("profile.set", label="drinks", value="green tea")
    lagging = Lagging(core.database, 1)
    stood_in = replace(core, dispatcher=replace(core.dispatcher, database=cast("Database", lagging)))
    answer = query(stood_in, namespace_scope=scope)
    assert lagging.failures == 0
    assert (answer["degraded"], answer["memory"]["results"]) == ([], [{"memory_key": "k"}])
    assert [section["label"] for section in answer["profile"]["sections"]] == ["drinks"]
