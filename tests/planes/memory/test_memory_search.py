import base64
import json
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_kit import found, keys, of_session, of_user, refused

from fakes import NAMESPACE, ORG, Core
from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Rejected
from loom.ledger.rules import Reader
from loom.planes.leg import Question
from loom.planes.memory import LEG

RECIPES = ["", "fast", "balanced", "quality", "verbatim", "code", "temporal", "graph"]
NASTY = [
    '"',
    "'",
    '"unclosed phrase',
    'a "quoted phrase" b',
    "NOT walrus",
    "walrus AND OR NEAR(",
    "walrus*",
    "key:walrus",
    "stem : walrus",
    "(((",
    "-walrus",
    "^",
    "\U0001f600",
    "\u202e\u200b",
    "東京の天気",
    "' OR 1=1 --",
    "% _ \\",
    "walrus " * 2000,
    "x" * 20_000,
    "\n\twalrus\r\n",
]


def fill(core: Core, count: int = 12) -> None:
    items = [{"memory_key": f"k{number}", "value": f"walrus fact number {number}"} for number in range(count)]
    core.call("memory.set_many", items=items)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("query", NASTY, ids=lambda query: repr(query)[:24])
def test_a_query_is_data(core: Core, query: str, recipe: str) -> None:
    fill(core, 5)
    answer = core.call("memory.search", query=query, recipe=recipe, top_k=3)
    assert answer["degraded"] == []
    if "walrus" in query:
        assert len(answer["results"]) == 3


@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000"])
def test_a_blank_query_is_refused(core: Core, query: str) -> None:
    assert refused(Rejected, core.call, "memory.search", query=query).extras["field"] == "query"


def test_only_ten_thousand_characters_are_used(core: Core) -> None:
    fill(core)
    assert found(core, "nothing " * 1250 + "walrus") == found(core, "nothing " * 1250)


def test_the_answer_has_every_field_of_a_hit(core: Core) -> None:
    made = core.call(
        "memory.set",
        memory_key="k",
        value="Maria likes <tea> & walrus",
        memory_type="episodic",
        tags=["b", "a"],
        valid_at="2026-01-01T00:00:00Z",
        user_id="ann",
    )
    answer = core.call("memory.search", query="walrus tea", user_id="ann", explain=True)
    [hit] = answer["results"]
    assert hit["excerpt"] == "Maria likes <tea> & walrus"
    assert (hit["memory_key"], hit["memory_type"], hit["tags"]) == ("k", "episodic", ["a", "b"])
    assert (hit["agent"], hit["user_id"], hit["namespace"]) == ("claude", "ann", NAMESPACE)
    assert (hit["created_at"], hit["valid_at"]) == ("2026-03-01T12:00:00Z", "2026-01-01T00:00:00Z")
    assert (hit["version"], hit["version_text"], hit["memory_id"]) == (
        made["version"],
        made["version_text"],
        made["memory_id"],
    )
    assert 0.3 < hit["similarity"] <= 1
    assert 0 < hit["rank_score"] <= 1
    assert hit["below_threshold"] is False
    shares = [value for name, value in hit["score_components"].items() if name.endswith("_share")]
    assert sum(shares) == pytest.approx(hit["rank_score"], abs=1e-4)
    assert answer["reader_block"].startswith("<memories>\n<memory key=")
    assert "Maria likes &lt;tea&gt; &amp; walrus</memory>" in answer["reader_block"]
    assert answer["retrieval_confidence"] == hit["probability"]
    assert (answer["abstain"], answer["abstain_reason"]) == (False, "")
    assert (answer["candidates_total"], answer["namespaces_searched"], answer["namespaces_skipped"]) == (
        1,
        [NAMESPACE],
        [],
    )
    assert (answer["recipe"], answer["next_page"]) == ("balanced", "")
    plain = core.call("memory.search", query="walrus tea", user_id="ann")
    assert plain["results"][0]["score_components"] is None


def test_nothing_found_abstains(core: Core) -> None:
    answer = core.call("memory.search", query="walrus")
    assert (answer["results"], answer["reader_block"], answer["retrieval_confidence"]) == ([], "", 0)
    assert (answer["abstain"], answer["abstain_reason"]) == (True, "nothing was found")
    fill(core)
    answer = core.call("memory.search", query="completely unrelated question")
    assert answer["abstain"]


def test_bodies(core: Core) -> None:
    long = "walrus " * 100
    core.call("memory.set", memory_key="fact", value=long)
    core.call("memory.set", memory_key="decision", value=long, memory_type="decision")
    core.call("memory.set", memory_key="json", value={"animal": "walrus"})

    def hits(bodies: str) -> dict[str, tuple[Any, Any]]:
        results = core.call("memory.search", query="walrus", bodies=bodies)["results"]
        return {hit["memory_key"]: (hit["excerpt"], hit["value"]) for hit in results}

    excerpt = hits("excerpt")
    assert len(excerpt["fact"][0]) <= 200
    assert excerpt["decision"] == (long, None)
    assert excerpt["json"] == ("animal: walrus", None)
    assert hits("full")["fact"][1] == long
    assert hits("full")["json"][1] == {"animal": "walrus"}
    assert hits("unit")["json"][1] == {"animal": "walrus"}
    assert set(hits("none").values()) == {(None, None)}
    assert core.call("memory.search", query="walrus", bodies="none")["reader_block"] == ""


def test_filters(core: Core) -> None:
    for number in range(6):
        core.call(
            "memory.set",
            memory_key=f"k{number}",
            value=f"walrus {number}",
            tags=["even" if number % 2 == 0 else "odd", f"n{number}"],
            memory_type="decision" if number < 2 else "semantic",
            agent="codex" if number < 3 else "cursor",
        )
    assert sorted(found(core, "walrus", tags=["even"])) == ["k0", "k2", "k4"]
    assert found(core, "walrus", tags=["even", "n2"]) == ["k2"]
    assert found(core, "walrus", tags=["eve"]) == []
    assert sorted(found(core, "walrus", memory_types=["decision"])) == ["k0", "k1"]
    assert sorted(found(core, "walrus", agents=["codex"])) == ["k0", "k1", "k2"]
    assert len(found(core, "walrus", agent="codex")) == 6
    assert found(core, "walrus", tags=["odd"], memory_types=["decision"], agents=["cursor"]) == []


def test_top_k_is_filled_when_most_may_not_be_seen(core: Core) -> None:
    for start in range(0, 600, 300):
        items = [{"memory_key": f"u{number}", "value": "walrus walrus walrus"} for number in range(start, start + 300)]
        core.call("memory.set_many", items=items, user_id="bob", agent=f"a{start}")
    items = [{"memory_key": f"m{number}", "value": f"some walrus {number} among other words"} for number in range(20)]
    core.call("memory.set_many", items=items, user_id="ann")
    for recipe in RECIPES:
        ways: list[dict[str, Any]] = [{"caller": of_user("ann")}, {"user_id": "ann", "read_scope": "own_user"}]
        for args in ways:
            got = keys(core.call("memory.search", query="walrus", top_k=20, recipe=recipe, **args))
            assert sorted(got) == sorted(f"m{number}" for number in range(20)), recipe
    core.call("memory.set", memory_key="tagged", value="a walrus at last, among very many other long words", tags=["t"])
    assert found(core, "walrus", tags=["t"], top_k=5) == ["tagged"]


def test_without_the_embedder_words_answer(core: Core) -> None:
    fill(core)
    core.embedder.off.set()
    for recipe in RECIPES:
        answer = core.call("memory.search", query="walrus 7", recipe=recipe)
        assert answer["degraded"] == ["embedder"]
        assert answer["results"][0]["memory_key"] == "k7"
        assert answer["results"][0]["similarity"] is None


def test_pages_meet_every_hit_once(core: Core) -> None:
    fill(core, 25)
    answer = core.call("memory.search", query="walrus fact", top_k=4, bodies="none", tags=[])
    seen = keys(answer)
    assert answer["candidates_total"] == 25
    for _ in range(10):
        if not answer["next_page"]:
            break
        answer = core.call("memory.next_page", page=answer["next_page"])
        assert all(hit["excerpt"] is None for hit in answer["results"])
        seen += keys(answer)
    assert len(seen) == 25
    assert set(seen) == {f"k{number}" for number in range(25)}


def test_a_handle_gives_no_rights(core: Core) -> None:
    for number in range(8):
        core.call("memory.set", memory_key=f"ann{number}", value="walrus", user_id="ann", session_id="s1")
        core.call("memory.set", memory_key=f"bob{number}", value="walrus", user_id="bob")
    handle = core.call("memory.search", query="walrus", top_k=2)["next_page"]
    for caller, mine in ((of_user("ann"), "ann"), (of_user("bob"), "bob"), (of_session("ann", "s1"), "ann")):
        got = keys(core.call("memory.next_page", page=handle, caller=caller))
        assert len(got) == 2
        assert all(key.startswith(mine) for key in got)
    assert keys(core.call("memory.next_page", page=handle, caller=of_session("ann", "s2"))) == []
    assert keys(core.call("memory.next_page", page=handle, namespace="other")) == []
    narrow = core.call("memory.search", query="walrus", top_k=2, user_id="ann", read_scope="own_user")["next_page"]
    assert all(key.startswith("ann") for key in keys(core.call("memory.next_page", page=narrow, user_id="ann")))


def test_the_longest_search_has_a_next_page(core: Core) -> None:
    fill(core, 5)
    long: dict[str, Any] = {"query": "walrus " + "".join(chr(0x4E00 + n) for n in range(9_993))}
    long["agents"] = ["claude"] + ["".join(chr(0x10000 + n * 7 + m) for m in range(256)) for n in range(99)]
    answer = core.call("memory.search", top_k=2, **long)
    assert len(core.call("memory.next_page", page=answer["next_page"])["results"]) == 2


def packed(content: object) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(content).encode())).decode().rstrip("=")


GOOD = {"query": "q", "top_k": 5, "offset": 5, "pool": 100}
HANDLES = [
    "x",
    "!!!!",
    "ü",
    "A" * 600_000,
    packed([]),
    packed({"query": "q"}),
    packed(GOOD | {"top_k": 1000}),
    packed(GOOD | {"pool": 10**6}),
    packed(GOOD | {"offset": -1}),
    packed(GOOD | {"org": "other"}),
    packed(GOOD | {"scope": 9}),
    packed(GOOD | {"query": "q" * 10_001}),
    packed(GOOD | {"query": "\ud800"}),
    packed("0" * 50_000_000),
    packed(GOOD)[:-4],
    packed(GOOD) + packed(GOOD),
]


@pytest.mark.parametrize("handle", HANDLES, ids=lambda handle: handle[:12])
def test_a_bad_handle_is_refused(core: Core, handle: str) -> None:
    assert refused(Rejected, core.call, "memory.next_page", page=handle).extras["field"] == "page"


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1, max_size=300))
def test_any_text_as_handle_is_answered_or_refused(core: Core, handle: str) -> None:
    try:
        core.call("memory.next_page", page=handle)
    except Rejected:
        return


def test_all_mine_reads_the_callers_namespaces(core: Core) -> None:
    for space in ("one", "two", "three"):
        core.call("memory.set", memory_key=space, value="walrus", namespace=space)
    assert found(core, "walrus", namespace="one") == ["one"]
    answer = core.call("memory.search", query="walrus", namespace="one", namespace_scope="all_mine")
    assert sorted(keys(answer)) == ["one", "three", "two"]
    assert answer["namespaces_searched"] == ["one", "three", "two"]
    token = Caller("t", Role.VIEWER, {"org": ORG}, frozenset({"one", "two"}))
    answer = core.call("memory.search", query="walrus", namespace="one", namespace_scope="all_mine", caller=token)
    assert sorted(keys(answer)) == ["one", "two"]


def test_dates_in_the_query_lead_the_temporal_recipe(core: Core) -> None:
    for month in range(1, 10):
        core.call("memory.set", memory_key=f"m{month}", value=f"note {month}", valid_at=f"2025-0{month}-15T00:00:00Z")
    answer = core.call("memory.search", query="what happened in May 2025", recipe="temporal", explain=True)
    assert answer["results"][0]["memory_key"] == "m5"
    assert answer["results"][0]["score_components"]["time_raw"] == 1.0


def test_verbatim_puts_the_phrase_first(core: Core) -> None:
    core.call("memory.set", memory_key="scattered", value="code error, disk disk, code error")
    core.call("memory.set", memory_key="phrase", value="long text before that says disk error code and goes on and on")
    assert found(core, "disk error code", recipe="verbatim")[0] == "phrase"
    assert found(core, '"error code" disk', recipe="verbatim")[0] == "phrase"


def test_sections_are_not_memories(core: Core) -> None:
    core.call("memory.set", memory_key="persona", value="walrus keeper", memory_type="profile")
    assert found(core, "walrus keeper") == []


def asked(core: Core, query: str, **changes: Any) -> Any:
    """What search.query's leg answers."""
    question: dict[str, Any] = {
        "namespace": NAMESPACE,
        "namespaces": (NAMESPACE,),
        "agent": "claude",
        "reader": Reader(ReadScope.NAMESPACE, "-", "-"),
        "query": query,
        "vector": core.embedder.embed_query(query, 1),
        "space": core.embedder.space.fingerprint,
        "random_cosine": core.embedder.random_cosine,
        "across_cosine": core.embedder.random_cosine,
        "question_cosine": core.embedder.question_cosine,
        "top_k": 5,
        "tags": (),
        "recipe": "",
        "bodies": "excerpt",
        "explain": False,
        "page": "",
        "now_us": core.clock(),
    }
    with core.database.transaction(ORG, write=False) as tx:
        return LEG.ask(tx, Question(**(question | changes)))


def test_the_leg_holds_back_what_is_unlikely(core: Core) -> None:
    core.call("memory.set", memory_key="hit", value="walrus password plumbago")
    for number in range(4):
        core.call(
            "memory.set", memory_key=f"noise{number}", value=f"completely different topic{number} entirely{number}"
        )
    section = asked(core, "walrus password plumbago")
    everything = core.call("memory.search", query="walrus password plumbago", top_k=5)["results"]
    flagged = [hit["memory_key"] for hit in everything if hit["below_threshold"]]
    assert flagged
    shown = [hit["memory_key"] for hit in section.body["results"]]
    assert "hit" in shown
    assert not set(shown) & set(flagged)
    assert (section.hits, section.withheld) == (len(shown), len(flagged))
    assert section.reason
    explained = asked(core, "walrus password plumbago", explain=True)
    assert (explained.hits, explained.withheld, explained.reason) == (5, 0, "")
    assert explained.body["results"][0]["score_components"]


def test_the_leg_shows_all_when_none_is_likely(core: Core) -> None:
    for number in range(4):
        core.call(
            "memory.set", memory_key=f"noise{number}", value=f"completely different topic{number} entirely{number}"
        )
    core.embedder.random_cosine = 0.5
    section = asked(core, "zebra quantum sandwich")
    assert all(hit["below_threshold"] for hit in section.body["results"])
    assert (section.hits, section.withheld) == (len(section.body["results"]), 0)
    assert section.body["abstain"]


def test_the_leg_pages_and_refuses_a_foreign_handle(core: Core) -> None:
    fill(core, 12)
    first = asked(core, "walrus fact", explain=True)
    second = asked(core, "walrus fact", explain=True, page=first.body["next_page"])
    again = core.call("memory.next_page", page=first.body["next_page"])
    keys_of = [[hit["memory_key"] for hit in one["results"]] for one in (first.body, second.body, again)]
    assert not set(keys_of[0]) & set(keys_of[1])
    assert keys_of[1] == keys_of[2]
    error = refused(Rejected, asked, core, "another query", page=first.body["next_page"])
    assert error.extras["field"] == "page"


def test_the_leg_works_without_a_vector(core: Core) -> None:
    fill(core, 3)
    section = asked(core, "walrus", vector=None)
    assert section.hits == 3
    assert section.degraded == ("embedder",)
