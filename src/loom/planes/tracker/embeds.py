"""Vectors of issues: made with the write when they are few, by a job when they are many or the model fails."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from loom.access import namespaces
from loom.jobs import outbox
from loom.jobs.handlers import Bench
from loom.jobs.vectored import Meant, Vectored
from loom.models.interface import Embedder
from loom.planes.tracker import rules, store
from loom.planes.tracker.rules import Issue
from loom.planes.tracker.search import shelf
from loom.retrieval import tokens
from loom.storage.indexes import Shelf, Vector
from loom.storage.interface import Transaction

EMBED: Final = "tracker.embed"
"""The job that makes the vectors a write did not; its subjects are item ids."""

TEXTS_MAX: Final = 64
"""Texts that a call embeds itself."""

WRITE_TIMEOUT_S: Final = 10.0
JOB_TIMEOUT_S: Final = 60.0
AT_ONCE_MAX: Final = 64
"""Issues that one embedding call of the job takes."""


TOTAL: Final = "SELECT count(*) AS total FROM tracker_issue WHERE org = :org"
AFTER: Final = """
SELECT item_id, namespace FROM tracker_issue WHERE org = :org AND item_id > :after ORDER BY item_id LIMIT :most
"""


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> Mapping[str, Vector]:
    """The vector of each text; none for any when they are too many.

    Raises:
        EmbedderFailed: the model gave no vectors in time.
    """
    wanted = list(dict.fromkeys(texts))
    if not wanted or len(wanted) > TEXTS_MAX:
        return {}
    return dict(zip(wanted, embedder.embed_passages(wanted, WRITE_TIMEOUT_S), strict=True))


def index(tx: Transaction, issue: Issue, space: str, vector: Vector | None) -> None:
    """Bring both indexes to the issue's text; without a vector the old one goes, and a job makes the new one."""
    its = shelf(issue.namespace)
    tx.text.put(its, issue.item_id, tokens.document(rules.searchable(issue.content)))
    if vector is not None:
        tx.vectors.put(its, issue.item_id, space, [vector])
        return
    tx.vectors.remove(its, issue.item_id)
    outbox.enqueue(tx, EMBED, str(issue.item_id))


def forget(tx: Transaction, issue: Issue) -> None:
    """Take the issue out of both indexes, and its text out of the index's files."""
    its = shelf(issue.namespace)
    tx.text.remove(its, issue.item_id)
    tx.vectors.remove(its, issue.item_id)
    tx.text.scrub(its)


def embed_issues(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job: a few at a time, each kept before the next few begin, so that a restart goes on where it stopped."""
    ids = [int(subject) for subject in subjects]
    for start in range(0, len(ids), AT_ONCE_MAX):
        _embed_few(bench, org, ids[start : start + AT_ONCE_MAX])


def _embed_few(bench: Bench, org: str, ids: Sequence[int]) -> None:
    space = bench.embedder.space.fingerprint
    with bench.database.transaction(org, write=False) as tx:
        issues = [
            issue
            for issue in store.for_work(tx, ids).values()
            if tx.vectors.missing(shelf(issue.namespace), space, [issue.item_id])
        ]
    if not issues:
        return
    texts = [_text_of(issue) for issue in issues]
    made = bench.embedder.embed_passages(texts, JOB_TIMEOUT_S)
    with bench.database.transaction(org, write=True) as tx:
        for namespace in sorted({issue.namespace for issue in issues}):
            namespaces.enter(tx, namespace)
        now = store.for_work(tx, [issue.item_id for issue in issues])
        for issue, vector in zip(issues, made, strict=True):
            after = now.get(issue.item_id)
            # A text that changed meanwhile is left to the job that its change enqueued.
            if after is not None and after.stamp == issue.stamp:
                tx.vectors.put(shelf(issue.namespace), issue.item_id, space, [vector])


def _text_of(issue: Issue) -> str:
    return rules.embeddable(issue.content.title, issue.content.body)


def _count(tx: Transaction) -> int:
    row = tx.row(TOTAL)
    return cast("int", row["total"]) if row else 0


def _after(tx: Transaction, after: int, most: int) -> Sequence[tuple[int, Shelf]]:
    rows = tx.rows(AFTER, after=after, most=most)
    return [(cast("int", row["item_id"]), shelf(cast("str", row["namespace"]))) for row in rows]


def _read(tx: Transaction, ids: Sequence[int]) -> Sequence[Meant]:
    issues = store.for_work(tx, ids)
    return [Meant(item_id, shelf(issue.namespace), [_text_of(issue)]) for item_id, issue in issues.items()]


JOBS = {EMBED: embed_issues}
VECTORED = Vectored("tracker", _count, _after, _read)
