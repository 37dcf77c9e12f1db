"""The tracker's part of search.query: the verdict on a question that is about a defect, in a code scope."""

from typing import cast

from loom.canonical import Json
from loom.planes.leg import Leg, Question, Section
from loom.planes.tracker import checking, shape, traits
from loom.planes.tracker.search import Quest
from loom.planes.tracker.store import Filter
from loom.storage.interface import Transaction

NAME = "tracker"


def org_of(question: Question) -> str | None:
    """The org that keeps the issues of the question's repository; None unless it is about a defect of one."""
    if question.scope is None or not shape.is_defect(question.query):
        return None
    return question.scope.tracker_org


def ask(tx: Transaction, question: Question) -> Section:
    """The verdict, with at most ten candidates. Where no issues are kept, every defect is new."""
    scope = question.scope
    if scope is None:
        raise ValueError("the tracker is asked in a code scope alone")
    title, _, body = question.query.partition("\n")
    quest = Quest(
        where=Filter(scope.tracker_namespace, question.reader),
        title=title,
        body=body,
        traits=traits.parsed(question.query),
        vector=question.vector,
        space=question.space,
        random_cosine=question.random_cosine,
    )
    found = checking.checked(tx, quest, ("", ""), None, question.top_k)
    body_of: dict[str, Json] = {
        "verdict": found.verdict,
        "confidence": found.confidence,
        "candidates": [cast("Json", one.model_dump(mode="json")) for one in found.candidates],
        "compared": found.compared,
        "repository": scope.repository,
        "namespace": scope.tracker_namespace,
    }
    lost = ("meaning",) if found.meaning_lost else ()
    return Section(body_of, len(found.candidates), degraded=lost)


LEG = Leg(NAME, ask, org_of=org_of)
