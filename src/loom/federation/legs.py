"""Asks planes side by side. One that fails or is late is left out, and the others answer."""

import logging
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import reduce
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
    """What the planes answered, by name, and the names of those that did not, or not of every org."""

    answers: Mapping[str, Timed]
    failed: tuple[str, ...]


def embedded(prepare: Prepare, query: str) -> Vector | None:
    """The query's vector; None when the embedder gives none in its share of the time."""
    try:
        return prepare.embedder.embed_query(query, prepare.limits.leg_timeout_s * EMBED_SHARE)
    except EmbedderFailed:
        return None


def ask(prepare: Prepare, legs: Sequence[Leg], question: Question, until_s: float) -> Asked:
    """Ask every leg that the question concerns, until a moment of the monotonic clock.

    A leg has a read transaction of its own for each org it reads. All begin at once and have all the time until then.
    Of a leg that reads two orgs, what came of one is shown where the other gave nothing.

    Raises:
        Rejected: a plane cannot make sense of the request itself, for example of its page handle.
        Unavailable: the server is stopping.
    """
    questions = {leg.name: list(_questions(leg, question)) for leg in legs}
    try:
        futures = {
            leg.name: [prepare.pool.submit(_timed, prepare, org, leg, asked) for org, asked in questions[leg.name]]
            for leg in legs
            if questions[leg.name]
        }
    except RuntimeError as error:  # what a pool that was shut down raises
        raise Unavailable("the server is stopping; try again in a few seconds", retry_after_s=1) from error
    wait([one for several in futures.values() for one in several], timeout=max(0.0, until_s - time.monotonic()))
    answers: dict[str, Timed] = {}
    failed: list[str] = []
    for name, several in futures.items():
        came = [timed for one in several if (timed := _answer(name, one)) is not None]
        if len(came) < len(several):
            failed.append(name)
        if came:
            section = reduce(lambda one, other: joined(one, other, question.top_k), (timed.section for timed in came))
            answers[name] = Timed(section, max(timed.took_ms for timed in came))
    return Asked(answers, tuple(failed))


def _questions(leg: Leg, question: Question) -> Iterator[tuple[str, Question]]:
    """The orgs that a leg reads, and what it is asked in each: its own, and the code scope's where that is another."""
    org, scope = leg.org_of(question), question.scope
    if org is None:
        return
    yield org, question
    if leg.scoped and scope is not None and scope.org != org:
        yield scope.org, replace(question, org=scope.org, namespaces=(scope.namespace,))


def _timed(prepare: Prepare, org: str, leg: Leg, question: Question) -> Timed:
    start_s = time.perf_counter()
    refined = leg.refined(prepare, question)
    section = read(prepare, org, lambda tx: leg.ask(tx, refined))
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
