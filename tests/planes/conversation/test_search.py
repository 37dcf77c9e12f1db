"""conversation.search and the conversations section: what is found, in which order, with what beside it."""

import json
from typing import Any

import pytest
from conversation_kit import BLOCKS, found, say, talk, turn_ids

from fakes import Core, CoreOf
from loom import federation
from loom.errors import Rejected
from loom.ledger import embedding
from loom.planes import conversation, memory
from loom.planes.conversation import excerpts
from loom.retrieval import lending


def hits(core: Core, query: str, **args: Any) -> list[dict[str, Any]]:
    return core.call("conversation.search", query=query, **args)["results"]


def test_a_hit_says_who_said_it_where_and_when_and_what_stood_beside_it(core: Core) -> None:
    messages = [
        {"role": "user", "name": "Ana", "content": "Shall we meet?", "time": "2024-03-04T10:00:00Z"},
        {"role": "user", "name": "Bo", "content": "The walrus enclosure at noon.", "time": "2024-03-04T10:01:00Z"},
        {"role": "user", "name": "Ana", "content": "Fine by me.", "time": "2024-03-04T10:02:00Z"},
    ]
    core.call("conversation.append", session="zoo", title="Plans", user_id="u", messages=messages)
    hit = hits(core, "walrus enclosure", top_k=1)[0]
    assert (hit["speaker"], hit["text"], hit["said_at"]) == ("Bo", messages[1]["content"], "2024-03-04T10:01:00Z")
    assert (hit["session"], hit["title"], hit["user_id"], hit["agent"]) == ("zoo", "Plans", "u", "claude")
    assert (hit["spoken"], hit["truncated"]) == (True, False)
    assert [one["text"] for one in hit["before"]] == ["Shall we meet?"]
    assert [one["text"] for one in hit["after"]] == ["Fine by me."]
    bare = hits(core, "walrus enclosure", top_k=1, neighbours=0, bodies="none")[0]
    assert (bare["before"], bare["after"], bare["text"]) == ([], [], None)


def test_a_neighbour_that_is_a_hit_itself_is_not_shown_twice(core: Core) -> None:
    talk(core, "s", "walrus one", "walrus two", "walrus three", "about nothing")
    answer = hits(core, "walrus", top_k=3, neighbours=2)
    ids = [hit["turn_id"] for hit in answer]
    ids += [one["turn_id"] for hit in answer for side in ("before", "after") for one in hit[side]]
    assert len(ids) == len(set(ids)) == 4


def test_the_one_who_is_asked_about_comes_first(core: Core) -> None:
    for name, content in (("Ben", "My job is baking bread."), ("Ana", "My job is baking cakes.")):
        message = {"role": "user", "name": name, "content": content}
        core.call("conversation.append", session=name, messages=[message])
    for name in ("Ana", "Ben"):
        answer = hits(core, f"What is the job of {name}, baking?", explain=True)
        assert [hit["speaker"] for hit in answer][:1] == [name]
        for hit in answer:
            shares = sum(part for leg, part in hit["score_components"].items() if leg.endswith("_share"))
            assert shares == pytest.approx(hit["rank_score"], abs=1e-5)


def test_a_turn_is_raised_by_what_stands_beside_it(core: Core) -> None:
    talk(core, "s", "Which tea is smoked over pinewood fires?", "Lapsang souchong, as I remember.")
    for number in range(20):
        talk(core, f"other{number}", f"Something else about the weather, number {number}.", "I remember.")
    answer = hits(core, "tea smoked over pinewood", top_k=2, explain=True)
    assert [hit["seq"] for hit in answer if hit["session"] == "s"] == [0, 1]
    told = answer[1]["score_components"]
    assert told["neighbours_share"] == pytest.approx(
        lending.SHARES[1] * (answer[0]["rank_score"] - answer[0]["score_components"]["neighbours_share"]), abs=1e-5
    )
    shares = sum(part for name, part in told.items() if name.endswith("_share"))
    assert shares == pytest.approx(answer[1]["rank_score"], abs=1e-5)


def test_a_neighbour_of_another_conversation_lends_nothing(core: Core) -> None:
    talk(core, "a", "zebra zebra")
    talk(core, "b", "nothing here")
    answer = hits(core, "zebra", explain=True, neighbours=0)
    assert all(hit["score_components"]["neighbours_share"] == 0 for hit in answer)


def test_what_a_tool_call_holds_is_found_but_after_what_was_said(core: Core) -> None:
    core.call("conversation.append", session="s", messages=[{"role": "assistant", "content": BLOCKS}])
    core.call(
        "conversation.append",
        session="t",
        messages=[
            {"role": "tool", "content": [{"type": "tool_result", "content": "okapi okapi okapi okapi"}]},
            {"role": "user", "content": "Did anybody mention an okapi in the corridor on the way to the parrots?"},
        ],
    )
    answer = hits(core, "okapi", neighbours=0)
    assert [hit["session"] for hit in answer[:1]] == ["t"]
    assert answer[0]["spoken"] is True
    assert {hit["seq"] for hit in answer if hit["session"] == "t"} == {0, 1}
    silent = next(hit for hit in answer if not hit["spoken"])
    assert "okapi okapi" in silent["text"]
    assert "s" in [hit["session"] for hit in answer]


def test_the_day_it_was_said_is_found(core: Core) -> None:
    for day in ("2023-05-07", "2023-06-09"):
        message = {"role": "user", "content": "We ate soup.", "time": f"{day}T12:00:00Z"}
        core.call("conversation.append", session=day, messages=[message])
    assert hits(core, "what did we eat on 9 June 2023", top_k=1)[0]["session"] == "2023-06-09"


def test_filters_hold_by_session_role_and_time(core: Core) -> None:
    for session, at in (("a", "2025-01-01"), ("b", "2025-02-01")):
        for role in ("user", "assistant"):
            message = {"role": role, "content": f"walrus of {session} by {role}", "time": f"{at}T00:00:00Z"}
            core.call("conversation.append", session=session, messages=[message])
    assert len(found(core, "walrus")) == 4
    assert sorted(found(core, "walrus", session="a")) == ["walrus of a by assistant", "walrus of a by user"]
    assert sorted(found(core, "walrus", roles=["user"])) == ["walrus of a by user", "walrus of b by user"]
    assert set(found(core, "walrus", since="2025-01-15T00:00:00Z")) == set(found(core, "walrus", session="b"))
    assert set(found(core, "walrus", until="2025-01-15T00:00:00Z")) == set(found(core, "walrus", session="a"))
    with pytest.raises(Rejected, match="until"):
        hits(core, "x", since="2025-01-02T00:00:00Z", until="2025-01-01T00:00:00Z")


def test_what_a_filter_lets_through_is_found_among_much_that_it_does_not(core: Core) -> None:
    for batch in range(3):
        lines = [{"role": "assistant", "content": f"walrus {batch} {number}"} for number in range(150)]
        core.call("conversation.append", session=f"much{batch}", messages=lines)
    talk(core, "little", "a walrus, once, long ago, in a far country")
    core.drain()
    assert found(core, "walrus", roles=["user"], top_k=3) == ["a walrus, once, long ago, in a far country"]


def test_a_long_turn_shows_the_part_that_fits(core: Core) -> None:
    long = "Nothing to see. " * 400 + "The gnomon stands in the yard. " + "Still nothing. " * 400
    talk(core, "s", long)
    hit = hits(core, "gnomon yard")[0]
    assert "gnomon" in hit["text"]
    assert len(hit["text"]) <= excerpts.EXCERPT_CHARACTERS
    assert hit["truncated"] is True
    whole = hits(core, "gnomon yard", bodies="full")[0]
    assert (whole["text"], whole["truncated"]) == (long.strip(), False)


def test_whole_hits_stay_within_one_answers_bounds(core: Core) -> None:
    for number in range(30):
        talk(core, f"s{number}", f"walrus {number} " + "word " * 4_000)
    answer = core.call("conversation.search", query="walrus", bodies="full", top_k=30)
    assert len(answer["results"]) == 30
    assert len(json.dumps(answer)) < 2 * excerpts.ANSWER_CHARACTERS_MAX


QUERIES = ['"', "NOT", "a AND (b", "*", "-x", "日本", "x" * 20_000, "'; DROP TABLE x; --", "\U0001f9ad"]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_data(core: Core, query: str) -> None:
    talk(core, "s", "hello there", "日本語の会話です")
    assert isinstance(hits(core, query), list)


def test_a_blank_query_is_refused(core: Core) -> None:
    for blank in ("", " \n"):
        with pytest.raises(Rejected, match="query"):
            hits(core, blank)


def test_search_query_has_a_conversations_section_that_ignores_tags(core_of: CoreOf) -> None:
    ops = [*memory.OPS, *conversation.OPS, *federation.ops([memory.LEG, conversation.LEG])]
    core = core_of(ops, {**embedding.JOBS, **conversation.JOBS})
    talk(core, "s", "The walrus password is plumbago.", "I see.")
    talk(core, "t", "walrus elsewhere", namespace="other")
    answer = core.call("search.query", query="walrus password", tags=["none-has-this"])
    results = answer["conversations"]["results"]
    assert (results[0]["text"], results[0]["namespace"]) == ("The walrus password is plumbago.", "local")
    assert {hit["namespace"] for hit in results} == {"local", "other"}
    assert answer["degraded"] == []
    here = core.call("search.query", query="walrus", namespace_scope="this", top_k=1)
    assert [hit["namespace"] for hit in here["conversations"]["results"]] == ["local"]
    assert here["conversations"]["results"][0]["turn_id"] in turn_ids(core, "s")
    core.call("conversation.append", session="late", messages=say("walrus again"))
    assert core.call("search.query", query="nothing alike at all", top_k=1)["conversations"]["results"]


def said(core: Core, amount: int) -> None:
    talk(core, "pages", *(f"the walrus ate fish number {number}" for number in range(amount)))


def test_pages_go_on_where_the_one_before_ended(core: Core) -> None:
    said(core, 25)
    whole = core.call("conversation.search", query="walrus fish", top_k=25, neighbours=0)
    assert (len(whole["results"]), whole["next_page"], whole["candidates_total"]) == (25, "", 25)
    read: list[str] = []
    page = ""
    for _ in range(3):
        answer = core.call("conversation.search", query="walrus fish", top_k=10, neighbours=0, page=page)
        read += [hit["turn_id"] for hit in answer["results"]]
        page = answer["next_page"]
    assert page == ""
    assert read == [hit["turn_id"] for hit in whole["results"]]


def test_a_page_of_another_question_is_refused(core: Core) -> None:
    said(core, 12)
    page = core.call("conversation.search", query="walrus fish", top_k=5)["next_page"]
    others: list[dict[str, Any]] = [{"query": "fish walrus"}, {"roles": ["user"]}, {"namespace": "x"}, {"page": "!"}]
    for other in others:
        with pytest.raises(Rejected) as raised:
            hits(core, **{"query": "walrus fish", "page": page, **other})
        assert raised.value.extras["field"] == "page"
    shown = hits(core, "walrus fish", top_k=2, bodies="none", page=page)
    assert [hit["text"] for hit in shown] == [None, None]


def test_a_hit_says_how_likely_it_answers(core: Core) -> None:
    talk(core, "s", "the walrus sleeps on ice", "we talked of taxes")
    answer = core.call("conversation.search", query="where does the walrus sleep?", neighbours=0)
    first = answer["results"][0]
    assert first["text"] == "the walrus sleeps on ice"
    assert answer["retrieval_confidence"] == first["probability"] > 0.05
    assert (answer["abstain"], first["below_threshold"]) == (False, False)
    nothing = core.call("conversation.search", query="walrus", session="nobody")
    assert (nothing["abstain"], nothing["retrieval_confidence"], nothing["next_page"]) == (True, 0.0, "")
