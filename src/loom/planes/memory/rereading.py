"""Has a cross-encoder read the best candidates again, between the transaction that finds them and the one that answers.

The model reads English; for a question in another language the first ranking stands, as it
does when the model is missing or not loaded yet. What it has not read in time keeps its first score.
"""

import time
from collections.abc import Callable, Mapping
from math import inf
from types import MappingProxyType
from typing import Final

from loom.models.reranker import Reranker
from loom.ops.spec import Prepare
from loom.planes.memory import answers, search, select
from loom.planes.memory.search import Quest
from loom.retrieval import reading, tokens
from loom.storage.interface import Raced, Transaction

TIMEOUT_S: Final = 0.16
"""How long a question waits for it, whatever it has read by then."""

WHOLE_S: Final = 0.21
"""How long the first ranking, the reading and the second ranking may take together. On a busy machine, where ranking
takes longer, less is read."""

TIME_SHARE: Final = 0.4
"""How much of the time that is left to the search it may take: the answer's own transaction follows."""

TIMEOUT_S_MIN: Final = 0.02

LONG_SHARE: Final = 1 / 3
"""Where so many of the best are longer than what it reads at once, the first ranking stands: it was trained on short
passages, and judged on BEAM's long answers by a part of each it took hit@5 from 69 to 64 in four chats."""

NOTHING: Final[Mapping[int, float]] = MappingProxyType({})


def read_again(
    prepare: Prepare, org: str, quest_in: Callable[[Transaction], Quest], until_s: float = inf
) -> Mapping[int, float]:
    """How well each of the best candidates answers, by item id; empty when the recipe asks for nothing of this kind.

    Args:
        prepare: whose reranker and transactions are used.
        org: the org that is read.
        quest_in: the search, made in the transaction that it reads in.
        until_s: the moment of the monotonic clock by which the whole search must be done.
    """
    reranker = prepare.reranker
    if reranker is None:
        return NOTHING
    start_s = time.monotonic()
    try:
        question, texts = _texts(prepare, org, quest_in)
    except Raced:
        question, texts = _texts(prepare, org, quest_in)
    now_s = time.monotonic()
    timeout_s = min(TIMEOUT_S, WHOLE_S - 2 * (now_s - start_s), TIME_SHARE * (until_s - now_s))
    return _scored(reranker, question, texts, timeout_s)


def _texts(prepare: Prepare, org: str, quest_in: Callable[[Transaction], Quest]) -> tuple[str, Mapping[int, str]]:
    """The question, and what is to be read of each candidate, the best first."""
    with prepare.read(org) as tx:
        quest = quest_in(tx)
        if not quest.recipe.read_again_max or not reading.is_english(quest.query):
            return quest.query, {}
        best = [one.item_id for one in search.ranked(tx, quest).order[: quest.recipe.read_again_max]]
        items = {item.item_id: item for item in select.by_ids(tx, quest.where, best)}
    texts = {item_id: answers.text_shown(items[item_id]) for item_id in best if item_id in items}
    if sum(len(text) > reading.WINDOW_CHARACTERS for text in texts.values()) >= LONG_SHARE * len(texts):
        return quest.query, {}
    query = tokens.query(quest.query)
    return quest.query, {item_id: reading.window(text, query) for item_id, text in texts.items()}


def _scored(reranker: Reranker, question: str, texts: Mapping[int, str], timeout_s: float) -> Mapping[int, float]:
    if not texts or timeout_s < TIMEOUT_S_MIN:
        return NOTHING
    scores = reranker.scores(question, list(texts.values()), timeout_s)
    return dict(zip(texts, scores, strict=False))
