"""How search.query asks a plane: one question in, one section out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from loom.canonical import Json
from loom.ledger.rules import Reader
from loom.ops.spec import Context, Prepare, Request
from loom.retrieval.reading import NOTHING_READ, Reading
from loom.storage.indexes import Vector
from loom.storage.interface import Transaction


@dataclass(frozen=True, slots=True)
class CodeScope:
    """The repository that the namespace named in the call stands for.

    Attributes:
        repository: its name, as `namespaces.repository_key` gives it.
        org: the org that keeps its code.
        namespace: the namespace of its code, the one named in the call.
        tracker_org: the org that keeps its issues.
        tracker_namespace: the namespace of its issues; empty when there is none that the caller reaches.
    """

    repository: str
    org: str
    namespace: str
    tracker_org: str
    tracker_namespace: str


@dataclass(frozen=True, slots=True)
class Question:
    """What search.query asks every plane.

    Attributes:
        namespace: the namespace named in the call.
        namespaces: the ones to read, the named one first.
        agent: who asks; not a filter.
        reader: how far the read reaches across users.
        query: the text, at most 10,000 characters.
        vector: the query's embedding, None when the embedder gave none.
        space: the embedding space of `vector`.
        random_cosine: the median cosine of unrelated texts in that space.
        across_cosine: the same, of two languages where the model knows several.
        question_cosine: the median cosine of a question and a text that has nothing to do with it.
        top_k: at most this many hits.
        tags: a hit must have all of them, in planes that know tags.
        recipe: a preset's name, empty for the default.
        bodies: `full`, `excerpt`, `none` or `unit`.
        explain: serve every hit with its ranking terms, withhold nothing.
        page: a handle from an earlier answer, empty for the first page.
        now_us: the moment of the call.
        org: the request's org.
        scope: the repository that the named namespace stands for, None when it stands for none.
        until_s: the moment of the monotonic clock at which a leg that has not answered is left out.
        read_again: what a plane's `refined` found out; see the plane.
    """

    namespace: str
    namespaces: tuple[str, ...]
    agent: str
    reader: Reader
    query: str
    vector: Vector | None
    space: str
    random_cosine: float
    across_cosine: float
    question_cosine: float
    top_k: int
    tags: tuple[str, ...]
    recipe: str
    bodies: str
    explain: bool
    page: str
    now_us: int
    org: str = ""
    scope: CodeScope | None = None
    until_s: float = inf
    read_again: Reading = NOTHING_READ


@dataclass(frozen=True, slots=True)
class Section:
    """A plane's answer.

    Attributes:
        body: the section as search.query shows it.
        hits: how many hits it shows.
        withheld: how many hits were held back, and why; 0 and empty for none.
        reason: why hits were held back.
        degraded: parts the plane had to do without, a short word each.
    """

    body: Mapping[str, Json]
    hits: int
    withheld: int = 0
    reason: str = ""
    degraded: tuple[str, ...] = ()


def ignore(ctx: Context, request: Request) -> None:
    """Take no note of an answer."""
    del ctx, request


def unrefined(prepare: Prepare, question: Question) -> Question:
    """The question as it is."""
    del prepare
    return question


def own_org(question: Question) -> str | None:
    """The request's org."""
    return question.org


@dataclass(frozen=True, slots=True)
class Leg:
    """A plane as search.query sees it.

    Attributes:
        name: the section's name in the answer.
        ask: answers a question inside a read transaction.
        noticed: told, in the call's own transaction, when the section that is shown has hits.
        org_of: the org whose rows answer a question; None leaves the leg out of this question.
        scoped: whether the section has the rows of the question's code scope, too, where another org keeps those. Its
            body is then a list `results`, whose entries carry a `similarity` or null.
        refined: what is done before the transaction of `ask` opens, with models or transactions of its own.
    """

    name: str
    ask: Callable[[Transaction, Question], Section]
    noticed: Callable[[Context, Request], None] = ignore
    org_of: Callable[[Question], str | None] = own_org
    scoped: bool = False
    refined: Callable[[Prepare, Question], Question] = unrefined
