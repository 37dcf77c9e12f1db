"""Has a cross-encoder read the best candidates again, between the transaction that finds them and the one that answers.

The model reads English; for a question in another language the first ranking stands, as it
does when the model is missing or not loaded yet. What it has not read in time keeps its first score.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from loom.models.reranker import Reranker
from loom.ops.spec import Prepare
from loom.planes.memory import answers, search, select
from loom.planes.memory.search import Quest
from loom.retrieval import reading, tokens
from loom.retrieval.reading import NOTHING_READ, Reading
from loom.storage.interface import Raced, Transaction

TIMEOUT_S: Final = 0.16
"""How long a question waits for it, whatever it has read by then."""

WHOLE_S: Final = 0.21
"""How long the first ranking, the reading and the second ranking may take together. On a busy machine, where ranking
takes longer, less is read."""

TIME_SHARE: Final = 0.4
"""How much of the time that is left to the search it may take: the answer's own transaction follows."""

TIMEOUT_S_MIN: Final = 0.02


@dataclass(frozen=True, slots=True)
class _ToRead:
    """The question, what is to be read of each candidate, the best first, and whether that is a part of any."""

    question: str
    windows: Mapping[int, str]
    in_part: bool


def read_again(prepare: Prepare, org: str, quest_in: Callable[[Transaction], Quest], until_s: float = inf) -> Reading:
    """How well each of the best candidates answers; nothing when the recipe does not ask.

    Args:
        prepare: whose reranker and transactions are used.
        org: the org that is read.
        quest_in: the search, made in the transaction that it reads in.
        until_s: the moment of the monotonic clock by which the whole search must be done.
    """
    reranker = prepare.reranker
    if reranker is None:
        return NOTHING_READ
    start_s = time.monotonic()
    try:
        what = _to_read(prepare, org, quest_in)
    except Raced:
        what = _to_read(prepare, org, quest_in)
    now_s = time.monotonic()
    timeout_s = min(TIMEOUT_S, WHOLE_S - 2 * (now_s - start_s), TIME_SHARE * (until_s - now_s))
    return _read(reranker, what, timeout_s)


def _to_read(prepare: Prepare, org: str, quest_in: Callable[[Transaction], Quest]) -> _ToRead:
    with prepare.read(org) as tx:
        quest = quest_in(tx)
        if not quest.recipe.read_again_max or not reading.is_english(quest.query):
            return _ToRead(quest.query, {}, in_part=False)
        best = [one.item_id for one in search.ranked(tx, quest).order[: quest.recipe.read_again_max]]
        items = {item.item_id: item for item in select.by_ids(tx, quest.where, best)}
    texts = {item_id: answers.text_shown(items[item_id]) for item_id in best if item_id in items}
    query = tokens.query(quest.query)
    windows = {item_id: reading.window(text, query) for item_id, text in texts.items()}
    return _ToRead(quest.query, windows, in_part=windows != texts)


def _read(reranker: Reranker, what: _ToRead, timeout_s: float) -> Reading:
    if not what.windows or timeout_s < TIMEOUT_S_MIN:
        return NOTHING_READ
    scores = reranker.scores(what.question, list(what.windows.values()), timeout_s)
    return Reading(dict(zip(what.windows, scores, strict=False)), len(what.windows), what.in_part)
