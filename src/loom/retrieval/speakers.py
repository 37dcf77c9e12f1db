"""Whom of those who speak in a talk a question is about.

"What did Ana say of her job?" is mostly answered by a turn of Ana's. Her name is no help to the words' score: where
two people talk, each name stands in half of the turns, and the other one says hers as often as she does.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final

from loom.retrieval import tokens
from loom.storage.indexes import TextQuery

OTHERS_SHARE: Final = 0.7
"""What a turn keeps of its score that another speaker has. LoCoMo's hit@5 is 71.0 with all of it, 75.8 with 0.85,
76.6 with 0.7 and with 0.5; recall@10 is best at 0.7 to 0.8, in either half of the dialogues."""

ROLES: Final = frozenset({"assistant", "ai", "bot", "system", "tool", "user", "human"})
"""Who speaks in a talk with a machine; a question that names one of them is about anything."""


def asked_about(query: TextQuery, speakers: Collection[str]) -> str:
    """The one speaker whom the question names; empty when it names none or several.

    A speaker is named by any word of the name that is no other speaker's too.

    Args:
        query: the question's tokens; what is left out of them as a stop word names nobody.
        speakers: the names, without roles.
    """
    words = {name: frozenset(tokens.document(name).words) for name in set(speakers)}
    holders = Counter(word for some in words.values() for word in some)
    asked = {word for word in query.words if holders[word] == 1}
    named = [name for name, some in words.items() if some & asked]
    return named[0] if len(named) == 1 else ""
