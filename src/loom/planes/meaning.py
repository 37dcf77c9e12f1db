"""What a question means, as every plane's search has it embedded before its transaction."""

from dataclasses import dataclass

from loom.models.interface import EmbedderFailed
from loom.models.sources import across_cosine
from loom.ops.spec import Prepare
from loom.storage.indexes import Vector


@dataclass(frozen=True, slots=True)
class Meaning:
    """A question's embedding.

    Attributes:
        vector: None when the embedder gave none in time; the search then goes by words.
        space: the embedding space.
        random_cosine: the median cosine of unrelated texts in that space.
        across_cosine: the same, of two languages where the model knows several.
        question_cosine: the median cosine of a question and a text that has nothing to do with it.
    """

    vector: Vector | None
    space: str
    random_cosine: float
    across_cosine: float
    question_cosine: float


def meaning_of(prepare: Prepare, query: str) -> Meaning:
    """Embed the question, in the time that a leg has."""
    embedder = prepare.embedder
    try:
        vector = embedder.embed_query(query, prepare.limits.leg_timeout_s)
    except EmbedderFailed:
        vector = None
    return Meaning(
        vector,
        embedder.space.fingerprint,
        embedder.random_cosine,
        across_cosine(embedder),
        embedder.question_cosine,
    )
