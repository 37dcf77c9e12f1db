"""What is promised of search.query and memory.search, sentence by sentence."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from fakes import LIMITS, Core
from loom.errors import Rejected
from loom.retrieval.recipes import RecipeName

LONG = "The database of the project is PostgreSQL eighteen and it listens on a port of its own. " * 10
QUESTION = "which database does the project use?"


@pytest.fixture(name="filled")
def _filled(core: Core) -> Core:
    for key, kind in (("plain", "semantic"), ("choice", "decision"), ("rule", "constraint")):
        core.call("memory.set", memory_key=key, value=f"{key}: {LONG}", memory_type=kind, tags=["stack", key])
    core.call("memory.set", memory_key="typed", value={"database": "PostgreSQL", "port": 1}, memory_type="decision")
    core.call("memory.set", memory_key="cat", value="My cat sleeps all day and dreams of mice.")
    return core


def ask(core: Core, **args: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"query": QUESTION, "namespace_scope": "this"} | args
    return core.call("search.query", **whole)


def hits(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {hit["memory_key"]: hit for hit in answer["memory"]["results"]}


def test_an_excerpt_is_the_first_200_characters_and_what_binds_is_whole(filled: Core) -> None:
    found = hits(ask(filled, explain=True))
    assert found["plain"]["excerpt"] == f"plain: {LONG}"[:200]
    assert found["choice"]["excerpt"] == f"choice: {LONG}"
    assert found["rule"]["excerpt"] == f"rule: {LONG}"
    assert found["typed"]["excerpt"] == '{"database":"PostgreSQL","port":1}'


def test_bodies_say_what_each_hit_carries(filled: Core) -> None:
    full = hits(ask(filled, explain=True, bodies="full"))
    assert full["plain"]["value"] == f"plain: {LONG}"
    assert full["typed"]["value"] == {"database": "PostgreSQL", "port": 1}
    bare = ask(filled, explain=True, bodies="none")
    assert {(hit["excerpt"], hit["value"]) for hit in hits(bare).values()} == {(None, None)}
    assert bare["memory"]["reader_block"] == ""
    filled.call("memory.set", memory_key="huge", value="database " * 20_000)
    unit = hits(ask(filled, explain=True, bodies="unit"))
    assert unit["huge"]["value"] is None
    assert unit["plain"]["value"] == f"plain: {LONG}"


def test_every_tag_is_needed_and_the_profile_ignores_them(filled: Core) -> None:
    filled.call("profile.set", label="database", value="Asks about the database.")
    answer = ask(filled, tags=["stack", "rule"])
    assert list(hits(answer)) == ["rule"]
    assert [section["label"] for section in answer["profile"]["sections"]] == ["database"]


def test_what_is_served_is_what_the_reader_block_holds(filled: Core) -> None:
    answer, whole = ask(filled), ask(filled, explain=True)
    assert "cat" in hits(whole)
    assert "cat" not in hits(answer)
    assert "dreams of mice" in whole["memory"]["reader_block"]
    assert "dreams of mice" not in answer["memory"]["reader_block"]
    assert answer["withheld"]["memory"] == len(hits(whole)) - len(hits(answer))
    assert answer["withheld"]["reason"]
    assert set(answer["withheld"]) == {"memory", "reason"}


def test_explain_withholds_nothing_and_shows_the_terms_of_each_hit(filled: Core) -> None:
    answer = ask(filled, explain=True)
    assert "withheld" not in answer
    assert any(hit["below_threshold"] for hit in hits(answer).values())
    assert all(hit["score_components"] for hit in hits(answer).values())
    assert all(hit["score_components"] is None for hit in hits(ask(filled)).values())


def test_when_every_hit_is_flagged_all_are_shown_and_none_is_withheld(core: Core) -> None:
    core.call("memory.set", memory_key="cat", value="My cat sleeps all day.")
    answer = ask(core, query="zebra")
    assert all(hit["below_threshold"] for hit in hits(answer).values())
    assert list(hits(answer)) == list(hits(ask(core, query="zebra", explain=True)))
    assert "withheld" not in answer


def test_without_a_code_scope_there_is_no_tracker_and_every_other_section(filled: Core) -> None:
    answer = ask(filled)
    assert "tracker" not in answer
    assert answer["knowledge"] == {"results": []}
    assert answer["conversations"] == {"results": []}
    assert answer["namespaces_skipped"] == []
    assert answer["degraded"] == []
    assert {"results", "reader_block", "next_page"} <= set(answer["memory"])


def test_a_page_goes_on_where_the_last_ended_and_obeys_the_request(filled: Core) -> None:
    first = ask(filled, top_k=2, explain=True)
    handle = first["memory"]["next_page"]
    second = ask(filled, top_k=2, explain=True, bodies="full", page=handle)
    assert len(hits(second)) == 2
    assert not hits(first).keys() & hits(second).keys()
    assert all(hit["score_components"] and hit["value"] for hit in hits(second).values())
    assert list(hits(ask(filled, top_k=1, explain=True, page=handle))) == list(hits(second))[:1]
    assert filled.call("memory.next_page", page=handle)["results"][0]["memory_key"] == next(iter(hits(second)))


def test_a_page_goes_on_in_the_namespaces_of_its_search(core: Core) -> None:
    for namespace in ("one", "two"):
        for number in range(3):
            core.call("memory.set", namespace=namespace, memory_key=f"{namespace}{number}", value=f"tea {number}")
    first = ask(core, namespace="one", query="tea", top_k=2, explain=True)
    second = core.call(
        "search.query", namespace="one", query="tea", top_k=2, explain=True, page=first["memory"]["next_page"]
    )
    assert sorted([*hits(first), *hits(second)]) == ["one0", "one1", "one2"]
    assert second["memory"]["namespaces_searched"] == ["one"]


def test_what_the_fan_out_left_is_named(core: Core) -> None:
    core = replace(core, dispatcher=replace(core.dispatcher, limits=replace(LIMITS, fanout_namespaces_max=2)))
    for namespace in ("old", "middle", "new", "named"):
        core.call("memory.set", namespace=namespace, memory_key="k", value=f"tea of {namespace}")
        core.clock.step(seconds=1)
    core.call("memory.set", namespace="old", memory_key="k2", value="tea again")
    answer = core.call("search.query", namespace="named", query="tea")
    assert answer["memory"]["namespaces_searched"] == ["named", "old"]
    assert answer["namespaces_skipped"] == answer["memory"]["namespaces_skipped"] == ["new", "middle"]
    assert ask(core, namespace="middle", query="tea")["namespaces_skipped"] == []
    alone = core.call("memory.search", namespace="named", namespace_scope="all_mine", query="tea")
    assert alone["namespaces_skipped"] == ["new", "middle"]


@pytest.mark.parametrize("recipe", get_args(RecipeName))
def test_every_recipe_answers_and_names_itself(filled: Core, recipe: str) -> None:
    answer = ask(filled, recipe=recipe)
    assert "plain" in hits(answer)
    assert answer["memory"]["recipe"] == (recipe or "balanced")
    assert filled.call("memory.search", query=QUESTION, recipe=recipe)["recipe"] == (recipe or "balanced")


@pytest.mark.parametrize("query", ["", " \n\t", "\u3000"])
@pytest.mark.parametrize("op", ["search.query", "memory.search"])
def test_a_blank_query_is_refused(core: Core, op: str, query: str) -> None:
    with pytest.raises(Rejected, match="query"):
        core.call(op, query=query)


@pytest.mark.parametrize("op", ["search.query", "memory.search"])
def test_any_other_query_is_data_and_its_first_10000_characters_are_used(core: Core, op: str) -> None:
    core.call("memory.set", memory_key="k", value="tea")
    for query in (" " * 10_001 + "tea", "tea " + "x" * 20_000):
        answer = core.call(op, query=query)
        found = answer.get("memory", answer)["results"]
        assert [hit["memory_key"] for hit in found] == ["k"]
    late = core.call(op, query="x" * 10_000 + " tea", explain=True)
    assert all(hit["score_components"].get("words_raw") is None for hit in late.get("memory", late)["results"])


@pytest.mark.parametrize("top_k", [0, 101, -1])
def test_top_k_is_1_to_100(core: Core, top_k: int) -> None:
    with pytest.raises(Rejected, match="top_k"):
        ask(core, top_k=top_k)


def test_top_k_bounds_every_section(core: Core) -> None:
    for number in range(4):
        core.call("memory.set", memory_key=f"tea/{number}", value=f"tea number {number}")
        core.call("profile.set", label=f"tea {number}", value="tea")
    answer = ask(core, query="tea", top_k=3, explain=True)
    assert len(hits(answer)) == 3
    assert len(answer["profile"]["sections"]) == 3


def test_memory_search_answers_every_field_it_names(filled: Core) -> None:
    answer = filled.call("memory.search", query=QUESTION, explain=True)
    assert set(answer) == {
        "results", "reader_block", "retrieval_confidence", "abstain", "abstain_reason", "degraded", "next_page",
        "candidates_total", "namespaces_searched", "namespaces_skipped", "recipe",
    }  # fmt: skip
    assert set(answer["results"][0]) >= {
        "memory_key", "excerpt", "memory_type", "tags", "agent", "user_id", "namespace", "created_at", "valid_at",
        "version", "version_text", "memory_id", "similarity", "rank_score", "below_threshold", "score_components",
    }  # fmt: skip
    assert answer["candidates_total"] == 5
    assert answer["namespaces_searched"] == ["local"]
