"""An embedding model behind a real HTTP server of `writer_kit`, and what a test needs around it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import SecretStr

from loom.models.endpoint import EmbeddingEndpoint, EndpointModel
from loom.models.hashing import HashingEmbedder
from writer_kit import KEY, Received, Reply, refuses

INNER = HashingEmbedder(48)


def inputs(got: Received) -> list[str]:
    """The texts of a request."""
    return list(got.body["input"])


def answering(vectors: Sequence[Sequence[float]], **more: Any) -> Reply:
    """These vectors, as the protocol wraps them."""
    data = [{"object": "embedding", "index": index, "embedding": list(one)} for index, one in enumerate(vectors)]
    return Reply(body=json.dumps({"object": "list", "data": data, **more}).encode())


def embedding(got: Received) -> Reply:
    """The vectors of the request's texts, twice as long as they should be."""
    return answering([[2 * float(one) for one in vector] for vector in INNER.embed_passages(inputs(got), 1.0)])


def holding(texts_max: int, length_max: int, status: int = 400, message: str = "no") -> Callable[[Received], Reply]:
    """An endpoint that takes so many texts at once, and texts so long."""

    def say(got: Received) -> Reply:
        texts = inputs(got)
        if len(texts) > texts_max:
            return refuses(422, message="batch size is over the maximum")
        if any(len(text) > length_max for text in texts):
            return refuses(status, message=message)
        return embedding(got)

    return say


def model_at(url: str, **changes: Any) -> EndpointModel:
    """The model of an endpoint, with a key."""
    known: dict[str, Any] = {"url": url, "model": "scripted", "api_key": SecretStr(KEY), "timeout_s": 60.0}
    return EndpointModel(EmbeddingEndpoint(**known | changes))
