"""How many requests a real HTTP endpoint gets that refuses what it is sent, and whose failure that is."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from embedding_kit import INNER, embedding, holding, inputs, model_at
from loom.models.breaker import Blame
from loom.models.embeddings_wire import BATCH_TEXTS_MAX
from loom.models.endpoint import CUT_TO_MIN, PROBE, REQUESTS_PER_BATCH_MAX, EndpointModel
from loom.models.interface import EmbedderFailed
from loom.storage.indexes import Vector
from writer_kit import Received, Reply, ScriptedEndpoint, always, refuses, scripted

PATIENCE_S = 30.0
TEXTS = [f"word{number}" for number in range(BATCH_TEXTS_MAX)]
LISTED = Reply(422, json.dumps({"detail": [{"loc": ["body", "input"], "msg": "too many"}]}).encode())


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with scripted(say=embedding) as made:
        yield made


@pytest.fixture
def model(endpoint: ScriptedEndpoint) -> Iterator[EndpointModel]:
    made = model_at(endpoint.url, timeout_s=PATIENCE_S)
    yield made
    made.close()


def made(model: EndpointModel, *texts: str) -> list[Vector]:
    return model.vectors(texts, PATIENCE_S, urgent=False)


def failed(model: EndpointModel, *texts: str) -> EmbedderFailed:
    with pytest.raises(EmbedderFailed) as caught:
        made(model, *texts)
    return caught.value


def right(vectors: list[Vector], texts: list[str]) -> bool:
    expected = INNER.embed_passages(texts, 1.0)
    return all(np.allclose(one, other, atol=1e-5) for one, other in zip(vectors, expected, strict=True))


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "message", ["The model `m` does not exist", "max batch size?", "", "\u6279\u6b21\u8fc7\u5927"], ids=range(4)
)
def test_one_short_text_shows_that_all_are_refused(
    endpoint: ScriptedEndpoint, model: EndpointModel, status: int, message: str
) -> None:
    endpoint.say = always(refuses(status, message=message))
    for texts in (TEXTS, ["one"], ["long " * 1_000]):
        endpoint.received.clear()
        failure = failed(model, *texts)
        assert f"refuses every text (HTTP {status}); see LOOM_EMBEDDER_MODEL" in str(failure)
        assert failure.blame is Blame.SERVICE
        assert [inputs(got) for got in endpoint.received][1:] == [[PROBE]]


def test_with_a_dimension_it_takes_one_request_more(endpoint: ScriptedEndpoint) -> None:
    endpoint.say = always(refuses(400, message="The model `m` does not exist"))
    asking = model_at(endpoint.url, dimension=48)
    failed(asking, *TEXTS)
    assert ["dimensions" in got.body for got in endpoint.received] == [True, True, False]
    asking.close()


@pytest.mark.parametrize("status", [401, 404, 418, 500])
def test_other_errors_are_not_looked_into(endpoint: ScriptedEndpoint, model: EndpointModel, status: int) -> None:
    endpoint.say = always(refuses(status, retry_after="3600", message="the batch is too"))
    assert failed(model, *TEXTS).blame is Blame.SERVICE
    assert len(endpoint.received) == 1


def test_what_is_not_of_size_is_not_halved(endpoint: ScriptedEndpoint, model: EndpointModel) -> None:
    def say(got: Received) -> Reply:
        return refuses(400, message="a text is forbidden here") if "bad" in inputs(got) else embedding(got)

    endpoint.say = say
    failure = failed(model, *TEXTS[:-1], "bad")
    assert "refuses the text (HTTP 400)" in str(failure)
    assert failure.blame is Blame.INPUT
    assert len(endpoint.received) == 2
    assert right(made(model, *TEXTS), TEXTS)


@pytest.mark.parametrize(
    "refusal",
    [
        refuses(422, message="batch size 32 > maximum allowed batch size 8"),
        refuses(400, message="input array may have at most 8 elements"),
        refuses(413, message="no"),
        refuses(400, message="\u6279\u6b21\u8fc7\u5927"),
        LISTED,
        Reply(400, b"<html>"),
    ],
    ids=["batch size", "at most", "413", "another language", "a list", "no JSON"],
)
def test_what_can_be_of_size_is_halved_until_it_fits(
    endpoint: ScriptedEndpoint, model: EndpointModel, refusal: Reply
) -> None:
    def say(got: Received) -> Reply:
        return refusal if len(inputs(got)) > 8 else embedding(got)

    endpoint.say = say
    assert right(made(model, *TEXTS), TEXTS)
    assert len(endpoint.received) == 1 + 2 + 4 + (refusal.status != 413)  # the short text decides, unless it is clear


def test_one_at_once_and_each_too_long_is_the_most_that_it_takes(
    endpoint: ScriptedEndpoint, model: EndpointModel
) -> None:
    length = 2 * CUT_TO_MIN
    endpoint.say = holding(1, length - 1, 400, "maximum context length is 128 tokens")
    texts = [f"{number:03}".ljust(length, ".") for number in range(BATCH_TEXTS_MAX)]
    assert right(made(model, *texts), [text[: length // 2] for text in texts])
    assert len(endpoint.received) == 63 + 1 + BATCH_TEXTS_MAX < REQUESTS_PER_BATCH_MAX


def test_a_batch_takes_a_bounded_number_of_requests(endpoint: ScriptedEndpoint) -> None:
    def say(got: Received) -> Reply:
        if "dimensions" in got.body:
            return refuses(400)
        return embedding(got) if sum(map(len, inputs(got))) < 2 * CUT_TO_MIN else refuses(413)

    endpoint.say = say
    asking = model_at(endpoint.url, dimension=48, timeout_s=PATIENCE_S)
    texts = [f"{number:03}".ljust(1_850, ".") for number in range(BATCH_TEXTS_MAX)]
    failure = failed(asking, *texts)
    assert "requests are too few" in str(failure)
    assert failure.blame is Blame.INPUT
    assert len(endpoint.received) == REQUESTS_PER_BATCH_MAX
    endpoint.received.clear()
    assert len(made(asking, *texts)) == BATCH_TEXTS_MAX  # three requests less, now that it is known how to ask
    assert len(endpoint.received) == REQUESTS_PER_BATCH_MAX - 1
    asking.close()
