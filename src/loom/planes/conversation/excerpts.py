"""The part of a turn that a hit shows, and how much all hits together may."""

from typing import Final

from loom.planes.conversation.store import Turn
from loom.retrieval import tokens
from loom.retrieval.passages import split_passages
from loom.storage.indexes import TextQuery

EXCERPT_CHARACTERS: Final = 400
NEIGHBOUR_CHARACTERS: Final = 200
LOOKED_AT_CHARACTERS: Final = 20_000
"""Of a long turn, where the best part is looked for."""

FULL_CHARACTERS_MAX: Final = 20_000
"""Of one turn that is shown whole."""

ANSWER_CHARACTERS_MAX: Final = 200_000
"""Of all hits that are shown whole."""


class Room:
    """How much text an answer has room for still."""

    def __init__(self, characters: int = ANSWER_CHARACTERS_MAX) -> None:
        self._left = characters

    def text_of(self, turn: Turn, query: TextQuery, bodies: str) -> tuple[str, bool]:
        """What a hit shows of a turn, and whether that is a part of it; an excerpt where the room is used up."""
        whole = turn.said if turn.spoken else turn.aside
        text = best_part(whole, query)
        if bodies == "full" and self._left > 0:
            text = whole[: min(FULL_CHARACTERS_MAX, self._left)]
        self._left -= len(text)
        return text, len(text) < len(whole)


def best_part(text: str, query: TextQuery) -> str:
    """The part of a text, at most 400 characters, that holds most of the question's stems; the first of equals."""
    if len(text) <= EXCERPT_CHARACTERS:
        return text
    asked = frozenset(query.stems)
    looked_at = text[:LOOKED_AT_CHARACTERS]
    parts = [
        part
        for start in range(0, len(looked_at), LOOKED_AT_CHARACTERS // 4)
        for part in split_passages(
            looked_at[start : start + LOOKED_AT_CHARACTERS // 4], characters_max=EXCERPT_CHARACTERS
        )
    ]
    return max(parts, key=lambda part: len(tokens.stems_among(part, asked)), default=text)[:EXCERPT_CHARACTERS]
