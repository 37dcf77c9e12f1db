"""Turns of a talk that are memories, and what quality has read again."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fakes import Core, CoreOf
from loom import federation
from loom.ledger import embedding
from loom.planes import memory
from loom.planes.memory import neighbours, rereading, select

QUESTION = "tea smoked over pinewood"
ASKS = "Ana: Which tea is smoked over pinewood fires?"
ANSWERS = "Ben: Lapsang souchong, as I remember."
OTHERS = [f"Cleo: Something about the weather, number {number}, I remember." for number in range(30)]


def write(core: Core, values: Sequence[str], prefix: str = "t", **fields: Any) -> None:
    items = [{"memory_key": f"{prefix}{number}", "value": value, **fields} for number, value in enumerate(values)]
    core.call("memory.set_many", items=items)


def hits(core: Core, query: str = QUESTION, **how: Any) -> list[dict[str, Any]]:
    return core.call("memory.search", query=query, explain=True, **how)["results"]


def keys(found: Sequence[dict[str, Any]]) -> list[str]:
    return [hit["memory_key"] for hit in found]


def share(core: Core, key: str, **how: Any) -> float:
    found = [hit for hit in hits(core, top_k=40, **how) if hit["memory_key"] == key]
    return found[0]["score_components"].get("neighbours_share", 0.0) if found else 0.0


@pytest.mark.parametrize("memory_type", ["semantic", "episodic"])
def test_a_turn_is_raised_by_the_turn_beside_it(core: Core, memory_type: str) -> None:
    write(core, [*OTHERS[:15], ASKS, ANSWERS, *OTHERS[15:]], memory_type=memory_type)
    found = hits(core, top_k=2)
    assert keys(found) == ["t15", "t16"]
    for hit in found:
        told = hit["score_components"]
        assert sum(part for name, part in told.items() if name.endswith("_share")) == pytest.approx(
            hit["rank_score"], abs=1e-5
        )
    assert share(core, "t16", recipe="fast") == 0.0


@pytest.mark.parametrize("recipe", ["fast", "balanced"])
def test_the_one_who_is_asked_about_comes_first(core: Core, recipe: str) -> None:
    for key, value in (("b", "Ben: My job is baking bread."), ("a", "Jos\u00e9: My job is baking cakes.")):
        core.call("memory.set", memory_key=key, value=value, session_id=key)
    write(core, ["A job of baking is open.", *OTHERS], session_id="others")
    for name, first, second in (("Ben", "b", "a"), ("jos\u00e9", "a", "b")):
        found = hits(core, f"What is the job of {name}, baking?", recipe=recipe, top_k=40)
        assert keys(found).index(first) < keys(found).index(second)
        lowered = next(hit for hit in found if hit["memory_key"] == second)
        parts = [part for leg, part in lowered["score_components"].items() if leg.endswith("_share")]
        assert sum(parts) == pytest.approx(lowered["rank_score"], abs=1e-5)


def test_who_speaks_in_a_memory() -> None:
    seen = select.Seen("a", "-", "-", "semantic", None, 0, "")
    for head, name in (
        ('"Ana: yes"', "Ana"),
        ('"Ana Maria Lopez: yes"', "Ana Maria Lopez"),
        ('"\u00c9mile: oui"', "\u00c9mile"),
        ('"assistant: yes"', "assistant"),
        ('"note: buy milk"', ""),
        ('"Something else: and more words"', ""),
        ('{"Ana": 1}', ""),
    ):
        assert neighbours.speaker_of(replace(seen, head=head)) == name


def test_facts_that_were_written_one_after_the_other_lend_nothing(core: Core) -> None:
    write(core, ["Which tea is smoked over pinewood fires?", "Lapsang souchong, as I remember.", *OTHERS])
    assert share(core, "t1") == 0.0


def test_turns_of_two_days_or_of_two_talks_lend_nothing(core: Core) -> None:
    days = ["2026-05-01T10:00:00Z", "2026-05-03T10:00:00Z"]
    items = [
        {"memory_key": f"d{place}", "value": value, "valid_at": day}
        for place, (value, day) in enumerate(zip((ASKS, ANSWERS), days, strict=True))
    ]
    core.call("memory.set_many", items=items)
    assert share(core, "d1") == 0.0
    core.call("memory.set", memory_key="e0", value=ASKS, session_id="one")
    core.call("memory.set", memory_key="e1", value=ANSWERS, session_id="two")
    assert share(core, "e1") == 0.0
    core.call("memory.set", memory_key="f0", value=ASKS, session_id="three", agent="one")
    core.call("memory.set", memory_key="f1", value=ANSWERS, session_id="three", agent="two")
    assert share(core, "f1") > 0.0


def test_a_turn_that_may_not_be_shown_lends_nothing(core: Core) -> None:
    core.call("memory.set", memory_key="s0", value=ASKS, sensitivity="high")
    core.call("memory.set", memory_key="s1", value=ANSWERS)
    assert share(core, "s1") == 0.0
    core.call("memory.set", memory_key="s0", value=ASKS, sensitivity="normal")
    core.call("memory.set", memory_key="s1", value=ANSWERS + " Yes.")
    assert share(core, "s1") > 0.0


def test_what_the_user_said_comes_before_what_the_assistant_said_unless_that_is_asked_for(core: Core) -> None:
    write(core, ["assistant: The walrus sings at noon.", *OTHERS, "user: The walrus sings at noon."], prefix="w")
    assert keys(hits(core, "when does the walrus sing?", top_k=2))[0] == "w31"
    scores = {hit["memory_key"]: hit["rank_score"] for hit in hits(core, "when did you say the walrus sings?", top_k=2)}
    assert scores["w0"] == pytest.approx(scores["w31"], rel=0.2)


def test_a_label_before_a_colon_is_nobody_who_speaks(core: Core) -> None:
    notes = ["Decision: the logo is green.", "Database: we chose Postgres for the orders.", *OTHERS]
    write(core, notes, prefix="n")
    asked = "what was the decision on the database for the orders?"
    assert keys(hits(core, asked, top_k=1)) == ["n1"]
    write(core, ["Decision said: no.", "Ana: the logo is green.", "Ben: we chose Postgres."], prefix="t")
    assert keys(hits(core, asked, top_k=1)) == ["n1"]


def test_roles_are_roles_however_they_are_written(core: Core) -> None:
    write(core, ["Assistant: The walrus sings at noon.", *OTHERS, "User: The walrus sings at noon."], prefix="w")
    assert keys(hits(core, "when does the walrus sing?", top_k=2))[0] == "w31"


def test_the_day_of_a_claim_is_searched(core: Core) -> None:
    write(core, OTHERS, prefix="o")
    core.call("memory.set", memory_key="fair", value="They met at the fair.", valid_at="2023-05-08T12:00:00Z")
    assert keys(hits(core, "Monday 8 May 2023", recipe="verbatim", top_k=1)) == ["fair"]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine does not shorten what is read."""
    monkeypatch.setattr(rereading, "WHOLE_S", 60.0)


class Reader:
    """A reranker that likes one word, and answers as many texts as it is told to."""

    def __init__(self, word: str, most: int = 1_000) -> None:
        self.word, self.most = word, most
        self.asked: list[tuple[str, int, float]] = []

    def warm(self) -> None:
        """Nothing to load."""

    def scores(self, question: str, texts: Sequence[str], timeout_s: float) -> list[float]:
        """10 for a text with the word, -10 for others."""
        self.asked.append((question, len(texts), timeout_s))
        return [10.0 if self.word in text else -10.0 for text in texts[: self.most]]

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the machine takes to rank, there is time to read; one test says otherwise."""
    monkeypatch.setattr(rereading, "WHOLE_S", 3600.0)


def with_reader(core: Core, reader: Reader) -> Core:
    return replace(core, dispatcher=replace(core.dispatcher, reranker=reader))


def test_quality_puts_first_what_was_read_to_be_the_answer(core: Core) -> None:
    write(core, [f"The walrus of house {number} sings" for number in range(12)], prefix="h")
    reader = Reader("house 7")
    found = hits(with_reader(core, reader), "which walrus sings in the house?", recipe="quality")
    assert found[0]["memory_key"] == "h7"
    told = found[0]["score_components"]
    assert told["reading_raw"] == 10.0
    assert sum(part for name, part in told.items() if name.endswith("_share")) == pytest.approx(
        found[0]["rank_score"], abs=1e-5
    )
    assert reader.asked == [("which walrus sings in the house?", 10, rereading.TIMEOUT_S)]


def test_search_query_has_it_read_too(core_of: CoreOf) -> None:
    core = core_of([*memory.OPS, *federation.ops([memory.LEG])], embedding.JOBS)
    write(core, [f"The walrus of house {number} sings" for number in range(12)], prefix="h")
    served = with_reader(core, Reader("house 7"))
    found = served.call(
        "search.query", query="which walrus sings in the house?", recipe="quality", namespace_scope="this"
    )
    assert keys(found["memory"]["results"])[0] == "h7"


def test_other_recipes_and_other_languages_are_not_read_again(core: Core) -> None:
    write(core, [f"The walrus of house {number} sings" for number in range(12)], prefix="h")
    reader = Reader("house 7")
    for recipe in ("", "fast", "balanced", "verbatim", "temporal"):
        hits(with_reader(core, reader), "which walrus sings?", recipe=recipe)
    hits(with_reader(core, reader), "Wer ist das walrus und wo wird es singen?", recipe="quality")
    assert reader.asked == []


def test_where_ranking_took_all_the_time_nothing_is_read(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "WHOLE_S", 0.0)
    write(core, [f"The walrus of house {number} sings" for number in range(12)], prefix="h")
    reader = Reader("house 7")
    assert len(hits(with_reader(core, reader), "which walrus sings in the house?", recipe="quality")) > 1
    assert reader.asked == []


@pytest.mark.parametrize(("long", "read"), [(2, True), (12, False)])
def test_texts_longer_than_its_window_are_not_judged_by_a_part(core: Core, long: int, read: bool) -> None:
    more = " It sang." * 100
    write(core, [f"The walrus of house {number} sings{more * (number < long)}" for number in range(12)], prefix="h")
    reader = Reader("house 7")
    hits(with_reader(core, reader), "which walrus sings in the house?", recipe="quality")
    assert bool(reader.asked) is read


@pytest.mark.parametrize("most", [0, 3])
def test_what_is_not_read_in_time_keeps_its_place(core: Core, most: int) -> None:
    write(core, [f"The walrus of house {number} sings" for number in range(12)], prefix="h")
    plain = keys(hits(core, "which walrus sings in the house?"))
    read = keys(
        hits(with_reader(core, Reader("no such word", most)), "which walrus sings in the house?", recipe="quality")
    )
    assert sorted(read) == sorted(plain)


def test_pages_of_quality_do_not_repeat(core: Core) -> None:
    write(core, [f"The walrus of house {number} sings" for number in range(30)], prefix="h")
    served = with_reader(core, Reader("house 2"))
    first = served.call("memory.search", query="which walrus sings?", recipe="quality", top_k=10)
    second = served.call("memory.next_page", page=first["next_page"])
    third = served.call("memory.next_page", page=second["next_page"])
    assert len({*keys(first["results"]), *keys(second["results"]), *keys(third["results"])}) == 30
