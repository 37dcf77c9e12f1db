"""The profile's part of search.query."""

from dataclasses import replace

import pytest

from fakes import Core, CoreOf
from loom.access.caller import ReadScope
from loom.ledger import embedding, indexing, store, writes
from loom.ledger.rules import HIGH, PROFILE, Attributes, Item, Place, Reader, draft
from loom.planes import profile
from loom.planes.leg import Question, Section
from loom.planes.profile.leg import CANDIDATES_MIN, EXCERPT_CHARACTERS


@pytest.fixture
def core(core_of: CoreOf) -> Core:
    return core_of(profile.OPS, embedding.JOBS, profile.LATE)


def question(core: Core, query: str) -> Question:
    return Question(
        namespace="local",
        namespaces=("local",),
        agent="-",
        reader=Reader(ReadScope.NAMESPACE, "-", "-"),
        query=query,
        vector=core.embedder.embed_query(query, 1.0),
        space=core.embedder.space.fingerprint,
        random_cosine=core.embedder.random_cosine,
        across_cosine=core.embedder.random_cosine,
        question_cosine=core.embedder.question_cosine,
        top_k=5,
        tags=(),
        recipe="",
        bodies="full",
        explain=False,
        page="",
        now_us=core.clock(),
    )


def ask(core: Core, asked: Question) -> Section:
    with core.database.transaction("dev", write=False) as tx:
        return profile.LEG.ask(tx, asked)


def sections(core: Core, asked: Question) -> list[dict[str, object]]:
    body = ask(core, asked).body["sections"]
    assert isinstance(body, list)
    return [section for section in body if isinstance(section, dict)]  # type: ignore[misc]


def labels(core: Core, asked: Question) -> list[object]:
    return [section["label"] for section in sections(core, asked)]


def row_of(core: Core, label: str) -> Item:
    with core.database.transaction("dev", write=False) as tx:
        found = store.exact(tx, Place("local", "claude", "-"), label)
    assert found is not None
    return found


def test_a_section_is_found_by_its_text_and_by_its_label(core: Core) -> None:
    made = core.call("profile.set", label="drinks", value="She likes green tea.", user_id="ada")
    core.call("profile.set", label="work", value="Writes Fortran.")
    [found] = sections(core, question(core, "does she like tea?"))
    assert found.pop("score") > 0  # type: ignore[operator]
    assert found == {
        "label": "drinks",
        "text": "She likes green tea.",
        "truncated": False,
        "agent": "claude",
        "user_id": "ada",
        "namespace": "local",
        "content_sha256": made["content_sha256"],
        "version": made["version"],
        "version_text": str(made["version"]),
        "match": "words",
    }
    assert labels(core, question(core, "drinks")) == ["drinks"]


def test_only_sections_that_match_are_shown(core: Core) -> None:
    core.call("profile.set", label="work", value="Writes Fortran.")
    for query in ("zebra", "?!", "the", "日本"):
        answer = ask(core, question(core, query))
        assert (answer.body, answer.hits) == ({"sections": []}, 0)


def test_words_come_before_meaning(core: Core) -> None:
    core.call("profile.set", label="near", value="alpha beta gamma")
    core.call("profile.set", label="words", value="omega " + "filler " * 30)
    asked = replace(question(core, "omega"), vector=core.embedder.embed_query("near alpha beta gamma", 1.0))
    assert [(section["label"], section["match"]) for section in sections(core, asked)] == [
        ("words", "words"),
        ("near", "meaning"),
    ]
    assert labels(core, replace(asked, top_k=1)) == ["words"]
    assert labels(core, replace(asked, vector=None)) == ["words"]
    assert labels(core, replace(asked, space="another")) == ["words"]


def test_the_namespace_that_was_named_comes_first(core: Core) -> None:
    core.call("profile.set", label="short", value="tea", namespace="other")
    core.call("profile.set", label="long", value="tea " + "and some more words " * 20)
    asked = question(core, "tea")
    both = replace(asked, namespaces=(asked.namespace, "other"))
    assert labels(core, both) == ["long", "short"]


def test_the_namespaces_asked_are_read_and_no_others(core: Core) -> None:
    for namespace in ("local", "second", "third"):
        core.call("profile.set", label=f"in {namespace}", value="tea", namespace=namespace)
    assert labels(core, question(core, "tea")) == ["in local"]
    both = replace(question(core, "tea"), namespaces=("local", "third"))
    assert sorted(map(str, labels(core, both))) == ["in local", "in third"]


def test_what_has_ended_or_is_sensitive_is_not_found(core: Core) -> None:
    for label in ("gone", "late", "secret", "high", "live"):
        core.call("profile.set", label=label, value="tea")
    with core.database.transaction("dev", write=True) as tx:
        rows = {
            label: store.exact(tx, Place("local", "claude", "-"), label) for label in ("gone", "late", "secret", "high")
        }
        for label, row in rows.items():
            assert row is not None
            if label == "gone":
                writes.tombstone(tx, row, "")
            elif label == "late":
                writes.set_expiry(tx, row, core.clock())
            elif label == "secret":
                writes.redact(tx, row)
            else:
                writes.write(tx, row, (row.place, label), draft("tea", Attributes(PROFILE, sensitivity=HIGH)))
    assert labels(core, question(core, "tea")) == ["live"]


def test_an_index_that_lies_shows_nothing(core: Core) -> None:
    core.call("profile.set", label="high", value="tea")
    row = row_of(core, "high")
    hidden = replace(row, head=replace(row.head, attributes=replace(row.head.attributes, sensitivity=HIGH)))
    with core.database.transaction("dev", write=True) as tx:
        writes.write(tx, row, (row.place, "high"), draft("tea", hidden.head.attributes))
        indexing.update(tx, None, row, None)
    assert labels(core, question(core, "tea")) == []


def test_a_narrow_reader_finds_its_own_among_many_of_others(core: Core) -> None:
    core.call("profile.set", label="mine", value="tea " + "filler " * 50, user_id="ada", session_id="s1")
    core.call("profile.set", label="of nobody", value="tea " + "filler " * 60)
    for number in range(CANDIDATES_MIN + 10):
        core.call("profile.set", label=f"{number}", value="tea", user_id="bob")
    asked = replace(question(core, "tea"), reader=Reader(ReadScope.OWN_USER, "ada", "s2"))
    assert labels(core, asked) == ["mine", "of nobody"]
    assert labels(core, replace(asked, reader=Reader(ReadScope.OWN_SESSION, "ada", "s2"))) == ["of nobody"]
    assert labels(core, replace(asked, reader=Reader(ReadScope.OWN_SESSION, "ada", "s1"))) == ["mine", "of nobody"]


@pytest.mark.parametrize(
    ("bodies", "length"),
    [("full", 3000), ("unit", 3000), ("excerpt", EXCERPT_CHARACTERS), ("none", None)],
)
def test_bodies_say_how_much_text_comes(core: Core, bodies: str, length: int | None) -> None:
    core.call("profile.set", label="x", value="tea" + "." * 2997)
    [found] = sections(core, replace(question(core, "tea"), bodies=bodies))
    assert (None if "text" not in found else len(str(found["text"]))) == length
    assert found.get("truncated", True) is (length != 3000)


@pytest.mark.parametrize("query", ['tea "', "tea NOT", "tea*", "tea - -", "(tea", "tea AND OR", "label:tea", "日本茶"])
def test_a_query_is_data(core: Core, query: str) -> None:
    core.call("profile.set", label="drinks", value="green tea 日本茶が好き")
    assert labels(core, question(core, query)) == ["drinks"]
