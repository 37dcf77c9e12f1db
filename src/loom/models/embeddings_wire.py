"""What is said to an OpenAI-compatible `/embeddings`, and how its answers are read. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, cast

import numpy as np

from loom.canonical import Json
from loom.models.breaker import Blame
from loom.models.interface import EmbedderFailed, unit
from loom.models.openai_wire import KEY_REFUSED, NO_QUOTA, NOT_THERE, REDIRECTED, TOO_LONG_KINDS, Reply
from loom.storage.indexes import Vector

BATCH_TEXTS_MAX: Final = 32
"""Texts of one request; servers of one's own often take no more."""

BATCH_LENGTH_MAX: Final = 60_000
"""Characters of one request, unless one text alone has more."""

TEXT_LENGTH_MAX: Final = 32_768
"""Characters of a text that are sent; more than the tokens of nearly every model hold."""

TOO_LARGE: Final = 413
NO_VECTOR: Final = "the endpoint's answer holds something that is no vector"
REFUSALS: Final = frozenset({400, TOO_LARGE, 422})
"""Statuses of an endpoint to which the request is too large, or holds a field it does not know."""

TOO_LONG_WORDS: Final = re.compile(
    r"context (?:length|size|window)|too (?:long|large|many tokens)|max\w*[\w ]{0,30} (?:tokens|length)", re.IGNORECASE
)
"""What servers say in words, some with status 500, of a text that does not fit."""

SIZE_WORDS: Final = re.compile(r"length|long|large|token|batch|size|many|max|limit|at most|exceed", re.IGNORECASE)
"""Some of these are in what servers say of a request that is too large, whatever else."""


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in order, as many together as one request holds by count and by characters."""
    batch: list[str] = []
    length = 0
    for text in texts:
        sent = text[:TEXT_LENGTH_MAX]
        if batch and (len(batch) == BATCH_TEXTS_MAX or length + len(sent) > BATCH_LENGTH_MAX):
            yield batch
            batch, length = [], 0
        batch.append(sent)
        length += len(sent)
    if batch:
        yield batch


def request_body(model: str, texts: Sequence[str], dimension: int) -> bytes:
    """The request as JSON; a dimension of 0 is not asked for. An empty text, which some refuse, is sent as a space."""
    readable = [text.encode("utf-8", "replace").decode() or " " for text in texts]
    told: dict[str, Json] = {"model": model, "input": list[Json](readable)}
    if dimension:
        told["dimensions"] = dimension
    return json.dumps(told, ensure_ascii=False).encode()


def vectors(reply: Reply, count: int, dimension: int) -> list[Vector]:
    """The vectors of an answer, at unit length, in the order of the texts.

    Args:
        reply: the answer.
        count: how many texts were sent.
        dimension: numbers that each vector has; 0 when that is not known yet.

    Raises:
        EmbedderFailed: the answer is none of this protocol's, or has other vectors than were asked for.
    """
    try:
        read = cast("object", json.loads(reply.body))
    except (ValueError, RecursionError):
        raise EmbedderFailed("the endpoint's answer is not JSON") from None
    data = _part(read, "data")
    if not isinstance(data, list):
        raise EmbedderFailed("the endpoint's answer holds no vectors")
    rows = cast("list[object]", data)
    if len(rows) != count:
        raise EmbedderFailed(f"the endpoint gave {len(rows)} vectors for {count} texts")
    placed: dict[int, Vector] = {}
    for place, row in enumerate(rows):
        index = _part(row, "index")
        placed[index if isinstance(index, int) else place] = _vector(_part(row, "embedding"))
    if sorted(placed) != list(range(count)):
        raise EmbedderFailed("the endpoint's vectors are numbered otherwise than the texts")
    found = [placed[place] for place in range(count)]
    wanted = dimension or len(found[0])
    for vector in found:
        if len(vector) != wanted:
            raise EmbedderFailed(f"the endpoint gave a vector of {len(vector)} numbers, and {wanted} are expected")
    return found


def is_too_long(reply: Reply) -> bool:
    """Whether an error says that the text does not fit."""
    if reply.status == TOO_LARGE:
        return True
    said = _error(reply, "message")
    kinds = {_error(reply, "code"), _error(reply, "type")}
    return bool(kinds & TOO_LONG_KINDS) or (isinstance(said, str) and bool(TOO_LONG_WORDS.search(said)))


def can_be_too_much(reply: Reply) -> bool:
    """Whether an error can mean that fewer or shorter texts may be taken: it says so, or nothing that is understood."""
    if is_too_long(reply):
        return True
    said = _error(reply, "message")
    understood = isinstance(said, str) and said.isascii()
    return reply.status in REFUSALS and (not understood or bool(SIZE_WORDS.search(str(said))))


def is_hopeless(reply: Reply) -> bool:
    """Whether an error of a kind that is asked again will not go away by that."""
    return is_too_long(reply) or NO_QUOTA in {_error(reply, "code"), _error(reply, "type")}


def failure(reply: Reply) -> EmbedderFailed:
    """What a reply that is no answer means. Of its body, nothing is repeated."""
    status = reply.status
    if status in REDIRECTED:
        return EmbedderFailed(
            f"the endpoint sends on to another address (HTTP {status}), where no text is sent; "
            "set LOOM_EMBEDDER_URL to the address that answers"
        )
    if status in KEY_REFUSED:
        return EmbedderFailed(f"the endpoint refuses the key (HTTP {status}); see LOOM_EMBEDDER_API_KEY")
    if is_too_long(reply):
        return EmbedderFailed(f"the text is too long for the endpoint (HTTP {status})", blame=Blame.INPUT)
    if is_hopeless(reply):
        return EmbedderFailed("the endpoint says that the key's quota is used up")
    told = {
        NOT_THERE: "the endpoint knows no such path or model (HTTP 404); see LOOM_EMBEDDER_URL and LOOM_EMBEDDER_MODEL",
        **{
            refusal: f"the endpoint refuses every text (HTTP {refusal}); see LOOM_EMBEDDER_MODEL"
            for refusal in REFUSALS
        },
    }
    return EmbedderFailed(told.get(status, f"the endpoint answers HTTP {status}"))


def refused(reply: Reply) -> EmbedderFailed:
    """What a reply means to a text where the endpoint takes others."""
    if reply.status in REFUSALS and not is_too_long(reply):
        return EmbedderFailed(f"the endpoint refuses the text (HTTP {reply.status})", blame=Blame.INPUT)
    return failure(reply)


def _vector(value: object) -> Vector:
    numbers = cast("list[object]", value) if isinstance(value, list) else []
    if not numbers or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
        raise EmbedderFailed(NO_VECTOR, blame=Blame.INPUT)
    try:
        return unit(np.asarray(numbers, dtype=np.float32))
    except OverflowError:  # an integer that no float holds
        raise EmbedderFailed(NO_VECTOR, blame=Blame.INPUT) from None


def _error(reply: Reply, name: str) -> object:
    """A field of the error, wherever a server puts it."""
    try:
        read = cast("object", json.loads(reply.body))
    except (ValueError, RecursionError):
        return None
    error = _part(read, "error")
    if isinstance(error, str) and name == "message":
        return error
    found = _part(cast("object", error) if isinstance(error, dict) else read, name)
    return found if isinstance(found, str) else None


def _part(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
