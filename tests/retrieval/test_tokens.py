import string
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.retrieval.tokens import (
    DOCUMENT_CHARACTERS_MAX,
    PHRASES_MAX,
    QUERY_TOKENS_MAX,
    document,
    phrases,
    query,
    stems_among,
)

FORBIDDEN = set(string.punctuation) - {"_"} | set(string.whitespace) | {"\0"}


def finds(asked: str, text: str) -> bool:
    """Whether every stem that `asked` looks for is in `text`."""
    wanted = query(asked).stems
    return bool(wanted) and set(wanted) <= set(document(text).stems)


def finds_phrase(asked: str, text: str) -> bool:
    words = tuple(document(text).words)
    runs = [tuple(run) for run in phrases(asked)]
    return any(words[at : at + len(run)] == run for run in runs for at in range(len(words)))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("cafe", "Wir treffen uns im Café."),
        ("CAFÉ", "a cafe"),
        ("cafe\u0301", "café"),
        ("strasse", "Straße"),
        ("STRASSE", "die Straße"),
        ("schon", "schön"),
        ("Ångström", "angstrom"),
        ("smorrebrod", "Smørrebrød"),
        ("istanbul", "İstanbul"),
        ("ΟΔΟΣ", "οδός"),
        ("елка", "ёлка"),
        ("東京", "私は東京都に住む"),
        ("学習", "機械学習の本"),
        ("京", "東京都"),
        ("월", "3월"),
        ("한국", "대한민국은 한국이다"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("ภาษา", "ฉันเรียนภาษาไทย"),
        ("ລາວ", "ປະເທດລາວ"),
        ("ភាសា", "ភាសាខ្មែរ"),
        ("محمد", "مُحَمَّد"),
        ("مُحَمَّد", "محمد"),
        ("احمد", "أحمد"),
        ("שלום", "שָׁלוֹם"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("👍", "done 👍🏽!"),
        ("👍🏽", "nice👍"),
        ("💻", "👩‍💻 at work"),
        ("🇩🇪", "from 🇫🇷🇩🇪"),
        ("user_id", "the column user_id is null"),
        ("user id", "user_id"),
        ("user_id", "db.user_id"),
        ("getUserName", "call getUserName() first"),
        ("user name", "getUserName"),
        ("getusername", "getUserName"),
        ("server", "HTTPServer2"),
        ("http", "HTTPServer2"),
        ("foo.bar/baz-qux", "see foo.bar/baz-qux:12"),
        ("baz-qux", "foo.bar/baz-qux"),
        ("baz", "foo.bar/baz-qux"),
        ("v1.2.3", "released v1.2.3 today"),
        ("c++", "written in C++."),
        ("C#", "C# code"),
        ("sha256", "the SHA-256 sum, sha256"),
        ("1000", "1,000 rows"),
        ("caroline", "Caroline's cat"),
        ("Caroline\u2019s", "caroline"),
        ("o'brien", "Mr O'Brien"),
        ("obrien", "Mr O'Brien"),
        ("don't", "They dont"),
        ("running", "he runs"),
        ("well known", "a well-known fact"),
        ("soft\u00adhyphen", "softhyphen"),
        ("\uff12\uff10", "20"),
        ("€", "50€"),
    ],
)
def test_they_find_each_other(asked: str, text: str) -> None:
    assert finds(asked, text)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("東大", "東京の大学"),
        ("cat", "catalogue"),
        ("🇪🇫", "🇩🇪🇫🇷"),
        ("c++", "c"),
        ("user_name", "user_id"),
        ("हन", "हिन्दी"),
    ],
)
def test_they_do_not_find_each_other(asked: str, text: str) -> None:
    assert not finds(asked, text)


@pytest.mark.parametrize(
    ("asked", "text", "found"),
    [
        ('"well known fact"', "a well-known fact", True),
        ('is "a well-known fact" here', "it is a well known fact", True),
        ('"known well"', "a well-known fact", False),
        ('"東京都"', "私は東京都に住む", True),
        ('"京東"', "東京都", False),
        ('"user_id"', "where user_id = 3", True),
        ("\u201cthe end\u201d", "this is the end.", True),
        ('"to be or not to be"', "To be, or not to be?", True),
    ],
)
def test_phrases_stand_side_by_side(asked: str, text: str, found: bool) -> None:
    assert finds_phrase(asked, text) is found


def test_stop_words_are_dropped_only_when_others_remain() -> None:
    assert query("what is the plan").words == ["plan"]
    assert query("to be or not to be").words == ["not"]
    assert query("Who are you?").words == ["who", "are", "you"]
    assert "the" in document("the plan").words


def test_words_keep_their_form_and_stems_lose_it() -> None:
    asked = query("running_jobs 2023 databases")
    assert asked.words == ["running", "jobs", "running_jobs", "2023", "databases"]
    assert asked.stems == ["run", "job", "running_jobs", "2023", "databas"]


def test_a_query_of_punctuation_has_no_tokens() -> None:
    asked = query('... -- "!?" \0 ___')
    assert (asked.words, asked.stems, asked.phrases) == ([], [], [])


def test_query_syntax_is_data() -> None:
    assert query("hello) OR scope:tB* NEAR(").words == ["hello", "scope", "t", "b", "scope_tb", "tb", "near"]


def test_phrases_are_required_only_where_there_are_any() -> None:
    assert query("tea", required=True).required is False
    assert query('"green tea"', required=True).required is True
    assert query("tea", word_weight=2.0).word_weight == 2.0


def test_a_query_is_bounded() -> None:
    asked = query(" ".join(f"word{number}x" for number in range(3_000)))
    assert len(asked.words) == QUERY_TOKENS_MAX
    assert len(asked.stems) <= QUERY_TOKENS_MAX
    assert "late" not in query("x " * 5_000 + "late").words
    assert len(query(" ".join(f'"a{number}"' for number in range(100))).phrases) == PHRASES_MAX


@pytest.mark.parametrize("unit", ["a", "a.", "a'", "A-", "aB", "東", "ก่", "ﷺ", "c++ ", '"a', "1,", "_", "👍", "\u0301"])
def test_long_texts_take_linear_time(unit: str) -> None:
    text = unit * (2 * DOCUMENT_CHARACTERS_MAX // len(unit))
    began = time.process_time()
    document(text)
    query(text)
    assert time.process_time() - began < 3.0


@given(st.text())
def test_tokens_hold_no_space_and_no_ascii_punctuation(text: str) -> None:
    indexed, asked = document(text), query(text)
    for tokens in (indexed.words, indexed.stems, asked.words, asked.stems, *asked.phrases):
        for token in tokens:
            assert token
            assert not FORBIDDEN & set(token)
            assert not any(character.isspace() for character in token)
            token.encode()
    assert len(indexed.words) == len(indexed.stems)


WORDS = st.lists(
    st.text(st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1, max_size=8), min_size=1, max_size=6
)


@given(WORDS, st.data())
def test_a_word_of_a_text_is_found_in_it(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))
    indexed = document(" ".join(words))
    assert set(query(word).words) <= set(indexed.words)
    assert set(query(word).stems) <= set(indexed.stems)


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=2, max_size=20), st.data())
def test_any_part_of_a_run_without_spaces_is_found_in_it(run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 1))
    end = data.draw(st.integers(start + 1, len(run)))
    assert finds(run[start:end], run)


@given(st.text())
def test_every_token_of_a_query_is_in_the_same_text_as_a_document(text: str) -> None:
    indexed, asked = document(text), query(text)
    assert set(asked.words) <= set(indexed.words)
    assert set(asked.stems) <= set(indexed.stems)


@given(
    st.text(),
    st.lists(st.sampled_from(["Skies", "dying", "userId", "early", "don't", "c++", "über", "Ångström", "東京"])),
)
def test_the_stems_among_are_those_of_the_document(text: str, words: list[str]) -> None:
    text = f"{text} {' '.join(words)}"
    stems = document(text).stems
    assert stems_among(text, stems) == set(stems)
    for stem in stems:
        assert stems_among(text, [stem, "notthere"]) == {stem}


def test_an_identifier_is_found_by_its_parts_however_they_were_joined() -> None:
    for asked in ("userId", "user-id", "user.id", "UserID"):
        assert {"user", "id"} <= set(query(asked).words) & set(document("user_id").words)
    assert "src_app_py" in document("src/app.py:12").words
    assert "10_30" in document("at 10:30").words


def test_bigrams_overlap() -> None:
    main = [word for word in document("東京都庁").words if len(word) == 2]
    assert all(first[1] == second[0] for first, second in pairwise(main))
