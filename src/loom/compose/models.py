"""The models that the settings name."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from loom.config import Settings
from loom.models import sources
from loom.models.breaker import CircuitBreaker
from loom.models.endpoint import EmbeddingEndpoint, EndpointModel
from loom.models.failing_fast import FailFastEmbedder, FailFastWriter, embedder_breaker, writer_breaker
from loom.models.foreign import Family, ForeignEmbedder, Memory, Model
from loom.models.foreign import opened as opened_foreign
from loom.models.hashing import DIMENSION, HashingEmbedder
from loom.models.interface import Embedder, EmbedderFailed, Space
from loom.models.library import FASTEMBED, LibraryModel, family_of
from loom.models.onnx import OnnxEmbedder
from loom.models.openai_style import Endpoint, OpenAiStyle
from loom.models.reranker import OnnxReranker, installed_reranker
from loom.models.writer import Writer
from loom.storage.interface import StoreError
from loom.system.spaces import Spaces

MODELS_FOLDER: Final = "models"
"""Models that a library fetched."""

ENDPOINT: Final = "openai"

log = logging.getLogger(__name__)


def opened(settings: Settings, spaces: Spaces, *, anew: bool = False) -> Embedder:
    """The embedder that the settings name, with what the store knows of its space.

    A model that Loom does not know beforehand is asked once what its vectors are like; with `anew`, once more.

    Raises:
        StoreError: its files are not there, a setting is missing, or the model had to be asked and did not answer.
    """
    return embedder(settings, Memory((lambda _: None) if anew else spaces.find, spaces.keep), spaces.named)


@dataclass(frozen=True, slots=True)
class Breakers:
    """What keeps callers from waiting for a model that does not answer; of one server.

    Attributes:
        questions: for the embedder, asked for questions.
        passages: for the embedder, asked for passages.
        writer: for the language model.
    """

    questions: CircuitBreaker = field(default_factory=partial(embedder_breaker, "questions"))
    passages: CircuitBreaker = field(default_factory=partial(embedder_breaker, "passages"))
    writer: CircuitBreaker = field(default_factory=writer_breaker)

    def before(self, made: Embedder) -> Embedder:
        """The embedder behind its breakers, where it can fail to answer: the built-in one is a part of the server."""
        return FailFastEmbedder(made, self.questions, self.passages) if isinstance(made, ForeignEmbedder) else made

    def embedder_rest_s(self) -> float:
        """How long the embedder is not asked."""
        return max(self.questions.rest_s, self.passages.rest_s)

    def embedder_open(self) -> int:
        """1 while the embedder is left alone, a rest that is over but was not ended by an answer included; else 0."""
        return int(self.questions.is_open or self.passages.is_open)


def embedder(
    settings: Settings, memory: Memory | None = None, named: Callable[[Space], Space] = lambda space: space
) -> Embedder:
    """The embedder that the settings name; its model is not loaded yet, unless it has to be asked what it is like.

    Raises:
        StoreError: as `opened`.
    """
    if settings.embedder == "hashing":
        return HashingEmbedder(settings.embedder_dimension or DIMENSION)
    try:
        if _is_foreign(settings):
            model, family = _foreign(settings)
            return _asked(model, family, memory or Memory(lambda _: None, lambda _space, _facts: None))
        model = sources.NAMED.get(settings.embedder)
        source = sources.installed(model) if model else sources.from_folder(Path(settings.embedder))
        return OnnxEmbedder(replace(source, space=named(source.space)))
    except sources.SourceUnusable as error:
        raise StoreError(str(error)) from error


def _is_foreign(settings: Settings) -> bool:
    return settings.embedder == ENDPOINT or settings.embedder.startswith(f"{FASTEMBED}:")


def _foreign(settings: Settings) -> tuple[Model, Family]:
    prefixes = settings.embedder_query_prefix, settings.embedder_passage_prefix
    dimension = settings.embedder_dimension
    if settings.embedder != ENDPOINT:
        name = settings.embedder.removeprefix(f"{FASTEMBED}:")
        return LibraryModel(name, settings.home / MODELS_FOLDER), family_of(name, *prefixes, dimension)
    for setting, value in (("embedder_url", settings.embedder_url), ("embedder_model", settings.embedder_model)):
        if not value:
            variable = f"LOOM_{setting.upper()}"
            raise StoreError(
                f"setting {setting} ({variable}): the embedder openai needs it; set it, or another embedder"
            )
    endpoint = EmbeddingEndpoint(
        url=settings.embedder_url,
        model=settings.embedder_model,
        api_key=settings.embedder_api_key,
        timeout_s=settings.embedder_timeout_s,
        dimension=dimension,
    )
    return EndpointModel(endpoint), Family(ENDPOINT, settings.embedder_model, *prefixes, dimension)


def _asked(model: Model, family: Family, memory: Memory) -> Embedder:
    try:
        return opened_foreign(model, family, memory)
    except EmbedderFailed as failure:
        model.close()
        raise StoreError(
            f"The embedding model {family.model} had to be asked what its vectors are like, and gave none: {failure}."
        ) from failure
    except BaseException:
        model.close()
        raise


def reranker(settings: Settings) -> OnnxReranker | None:
    """The reranker that comes with the built-in embedder; not loaded before a search asks for it.

    Without its files `quality` ranks as `balanced` does, so they are not demanded.
    """
    if settings.embedder != "builtin":
        return None
    try:
        return OnnxReranker(installed_reranker())
    except sources.SourceUnusable as error:
        log.warning("%s", error)
        return None


def writer(settings: Settings, breakers: Breakers) -> Writer | None:
    """The language model that the settings name, behind its breaker and not called yet; None when they name none.

    Raises:
        StoreError: they name half of one.
    """
    if not settings.writer_url and not settings.writer_model:
        return None
    if not settings.writer_url or not settings.writer_model:
        missing = "writer_model (LOOM_WRITER_MODEL)" if settings.writer_url else "writer_url (LOOM_WRITER_URL)"
        raise StoreError(f"setting {missing}: a language model needs both its endpoint and its name; set this one too")
    if settings.writer_output_tokens_max * 2 > settings.writer_context_tokens:
        raise StoreError(
            "setting writer_output_tokens_max (LOOM_WRITER_OUTPUT_TOKENS_MAX): is over half of writer_context_tokens"
        )
    model = OpenAiStyle(
        Endpoint(
            url=settings.writer_url,
            model=settings.writer_model,
            api_key=settings.writer_api_key,
            timeout_s=settings.writer_timeout_s,
            context_tokens=settings.writer_context_tokens,
            output_tokens_max=settings.writer_output_tokens_max,
        )
    )
    return FailFastWriter(model, breakers.writer)
