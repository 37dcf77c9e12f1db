"""Whom a question is about."""

import pytest

from loom.retrieval.speakers import asked_about
from loom.retrieval.tokens import query

TALK = {"Ana", "Ben Lopez", "Will"}


@pytest.mark.parametrize(
    ("question", "speakers", "about"),
    [
        ("What did Ana say of her job?", TALK, "Ana"),
        ("what is ana's job?", TALK, "Ana"),
        ("Where does Lopez live?", TALK, "Ben Lopez"),
        ("What do Ana and Ben plan?", TALK, ""),
        ("What will happen?", TALK, ""),
        ("Which database do we use?", TALK, ""),
        ("Where does Lopez live?", {"Ana Lopez", "Ben Lopez"}, ""),
        ("Where does Ana Lopez live?", {"Ana Lopez", "Ben Lopez"}, "Ana Lopez"),
        ("\u5c0f\u660e\u4f4f\u5728\u54ea\u91cc", {"\u5c0f\u660e", "\u5c0f\u7ea2"}, "\u5c0f\u660e"),
        ("Where does Jos\u00e9 live?", {"Jos\u00e9", "Ana"}, "Jos\u00e9"),
        ("Where does Ana live?", set[str](), ""),
    ],
)
def test_the_one_speaker_that_a_question_names(question: str, speakers: set[str], about: str) -> None:
    assert asked_about(query(question), speakers) == about
