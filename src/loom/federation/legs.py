"""Asks planes side by side. One that fails or is late is left out, and the others answer."""

import logging
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from loom.canonical import Json
from loom.errors import LoomError, Rejected, Unavailable
from loom.models.interface import EmbedderFailed
from loom.ops.spec import Prepare
from loom.planes.leg import Leg, Question, Section
from loom.storage.indexes import Vector
from loom.storage.interface import Raced, StoreError, Transaction

EMBED_SHARE = 0.5
"""How much of the time for a leg the query's embedding may take, so that words are searched even without it."""

EXPECTED = (LoomError, StoreError, Raced, EmbedderFailed)

Given = TypeVar("Given")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timed:
    """A section, and how long its plane took, in milliseconds."""

    section: Section
    took_ms: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What the planes answered, by name, and the names of those that did not."""

    answers: Mapping[str, Timed]
    failed: tuple[str, ...]


def embedded(prepare: Prepare, query: str) -> Vector | None:
    """The query's vector; None when the embedder gives none in its share of the time."""
    try:
        return prepare.embedder.embed_query(query, prepare.limits.leg_timeout_s * EMBED_SHARE)
    except EmbedderFailed:
        return None


def ask(prepare: Prepare, legs: Sequence[Leg], question: Question, until_s: float) -> Asked:
    """Ask every leg that the question concerns, each in a read transaction of its own, until a moment of the clock.

    Every leg begins at once and has all the time until then, measured by the monotonic clock.

    Raises:
        Rejected: a plane cannot make sense of the request itself, for example of its page handle.
        Unavailable: the server is stopping.
    """
    orgs = {leg.name: leg.org_of(question) for leg in legs}
    try:
        futures = {
            leg.name: prepare.pool.submit(_timed, prepare, org, leg, question)
            for leg in legs
            if (org := orgs[leg.name]) is not None
        }
    except RuntimeError as error:  # what a pool that was shut down raises
        raise Unavailable("the server is stopping; try again in a few seconds", retry_after_s=1) from error
    wait(futures.values(), timeout=max(0.0, until_s - time.monotonic()))
    answers: dict[str, Timed] = {}
    failed: list[str] = []
    for name, future in futures.items():
        answer = _answer(name, future)
        if answer is None:
            failed.append(name)
        else:
            answers[name] = answer
    return Asked(answers, tuple(failed))


def _timed(prepare: Prepare, org: str, leg: Leg, question: Question) -> Timed:
    start_s = time.perf_counter()
    refined = leg.refined(prepare, question)
    section = read(prepare, org, lambda tx: leg.ask(tx, refined))
    scope = question.scope
    if leg.scoped and scope is not None and scope.org != org:
        elsewhere = replace(question, org=scope.org, namespaces=(scope.namespace,))
        other = read(prepare, scope.org, lambda tx: leg.ask(tx, elsewhere))
        section = joined(section, other, question.top_k)
    return Timed(section, (time.perf_counter() - start_s) * 1000)


def joined(one: Section, other: Section, top_k: int) -> Section:
    """Two sections of one plane as one: the hits nearest to the question, those without a vector last. Pure."""
    hits = [hit for section in (one, other) for hit in cast("list[dict[str, Json]]", section.body["results"])]
    hits.sort(key=lambda hit: -cast("float", hit["similarity"] if hit["similarity"] is not None else -1.0))
    return Section(
        body={**one.body, "results": cast("Json", hits[:top_k])},
        hits=len(hits[:top_k]),
        withheld=one.withheld + other.withheld,
        reason=one.reason or other.reason,
        degraded=tuple(dict.fromkeys((*one.degraded, *other.degraded))),
    )


def read(prepare: Prepare, org: str, step: Callable[[Transaction], Given]) -> Given:
    """What `step` gives in a read transaction, run again when a replica did not come through."""
    try:
        with prepare.read(org) as tx:
            return step(tx)
    except Raced:
        with prepare.read(org) as tx:
            return step(tx)


def _answer(name: str, future: Future[Timed]) -> Timed | None:
    """What a leg gave, or None when it failed, is late or was given up; one that has not begun never will."""
    if future.cancel() or not future.done():
        return None
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, Rejected):
        raise error
    if not isinstance(error, EXPECTED):
        # The words of an error nobody expected can be stored text; the place is enough to find it.
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("search.query: the leg %s failed with %s\n%s", name, type(error).__name__, where)
    return None
