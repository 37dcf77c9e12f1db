"""What a cross-encoder is given to read."""

import pytest

from loom.retrieval.reading import WINDOW_CHARACTERS, is_english, window
from loom.retrieval.tokens import query


@pytest.mark.parametrize(
    ("question", "english"),
    [
        ("When did Caroline go to the support group?", True),
        ("postgres backup schedule", True),
        ("What did Zoë say about the café?", True),
        ("Wann wurde die Brücke gebaut?", False),
        ("Wer war der erste Kaiser", False),
        ("Quel est le nom de la rue", False),
        ("¿Cuándo se fundó la ciudad?", False),
        ("学校在哪里", False),
        ("где школа", False),
        ("1234 ?!", False),
    ],
)
def test_english_is_told_from_other_languages(question: str, english: bool) -> None:
    assert is_english(question) is english


def test_a_short_text_is_read_whole_and_of_a_long_one_the_part_that_was_asked_for() -> None:
    asked = query("who keeps the walrus?")
    assert window("Ana keeps the walrus.", asked) == "Ana keeps the walrus."
    long = "Nothing of note happened on that day.\n\n" * 60 + "Ana keeps the walrus.\n\n" + "It rained again.\n\n" * 60
    part = window(long, asked)
    assert "walrus" in part
    assert len(part) <= WINDOW_CHARACTERS
