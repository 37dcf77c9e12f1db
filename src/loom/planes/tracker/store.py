"""The issues' rows: their SQL, and how a row becomes an issue."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from loom.access import namespaces
from loom.access.caller import ReadScope
from loom.ledger import conditions
from loom.ledger.rules import Reader
from loom.planes import candidates
from loom.planes.tracker import rules
from loom.planes.tracker.rules import Content, Issue
from loom.storage.interface import Param, Row, Transaction

COLUMNS = """
SELECT i.item_id, i.namespace, i.user_id, i.agent, i.session_id, i.stamp, i.number, i.title, i.body, i.state,
    i.component, i.version, i.labels, i.url, i.duplicate_of, i.created_at, i.updated_at, i.traits
FROM tracker_issue i
"""

IDS = """
SELECT i.item_id FROM tracker_issue i
"""

TOTAL = """
SELECT count(*) AS total FROM tracker_issue i
"""

VISIBLE = (
    conditions.reached("i")
    + """
    AND i.org = :org AND i.namespace = :namespace AND i.created_at <= :as_of
    AND (:any_state = 1 OR i.state = :state) AND (:any_component = 1 OR i.component = :component)
    AND i.number <> :left_out
"""
)

SEEN = IDS + "WHERE " + VISIBLE + " AND i.item_id IN (:ids)"
VISIBLE_PAGE = (
    """
SELECT i.item_id, i.created_at FROM tracker_issue i
WHERE """
    + VISIBLE
    + """
    AND i.created_at >= :at AND (i.created_at > :at OR i.item_id > :after)
ORDER BY i.created_at, i.item_id LIMIT :most
"""
)
BY_IDS = COLUMNS + "WHERE " + VISIBLE + " AND i.item_id IN (:ids)"
COUNT = TOTAL + "WHERE " + VISIBLE

LISTED = (
    COLUMNS
    + "WHERE "
    + VISIBLE
    + """
    AND i.number <= :number AND (i.number < :number OR i.item_id < :item_id)
ORDER BY i.number DESC, i.item_id DESC LIMIT :most
"""
)

COUNT_EVERY = """
SELECT count(*) AS total FROM tracker_issue WHERE org = :org AND namespace = :namespace AND created_at <= :as_of
"""
"""What a reader of everything is shown, counted in an index without a look at the rows."""

BY_NUMBERS = IDS + "WHERE " + VISIBLE + " AND i.number IN (:numbers)"

EXACT = COLUMNS + "WHERE i.org = :org AND i.namespace = :namespace AND i.number = :number AND i.user_id = :user_id"

OF_NUMBER = COLUMNS + "WHERE i.org = :org AND i.namespace = :namespace AND i.number = :number ORDER BY i.user_id"

FOR_WORK = COLUMNS + "WHERE i.org = :org AND i.item_id IN (:ids)"

PUT = """
INSERT INTO tracker_issue (org, item_id, namespace, user_id, number, agent, session_id, run_id, stamp, title, body,
    state, component, version, labels, url, duplicate_of, created_at, updated_at, traits)
VALUES (:org, :item_id, :namespace, :user_id, :number, :agent, :session_id, :run_id, :stamp, :title, :body,
    :state, :component, :version, :labels, :url, :duplicate_of, :created_at, :updated_at, :traits)
ON CONFLICT (org, namespace, number, user_id) DO UPDATE SET agent = excluded.agent, session_id = excluded.session_id,
    run_id = excluded.run_id, stamp = excluded.stamp, title = excluded.title, body = excluded.body,
    state = excluded.state, component = excluded.component, version = excluded.version, labels = excluded.labels,
    url = excluded.url, duplicate_of = excluded.duplicate_of, created_at = excluded.created_at,
    updated_at = excluded.updated_at, traits = excluded.traits
"""

ADD_TRAIT = """
INSERT INTO tracker_trait (org, namespace, kind, name, item_id) VALUES (:org, :namespace, :kind, :name, :item_id)
"""

FORGET_TRAITS = "DELETE FROM tracker_trait WHERE org = :org AND item_id = :item_id"
FORGET = "DELETE FROM tracker_issue WHERE org = :org AND item_id = :item_id"
PURGE_TRAITS = "DELETE FROM tracker_trait WHERE org = :org AND namespace = :namespace"
PURGE = "DELETE FROM tracker_issue WHERE org = :org AND namespace = :namespace"

SHARING = """
SELECT item_id, count(*) AS shared FROM (
    SELECT +t.item_id AS item_id FROM tracker_trait t
    WHERE t.org = :org AND t.namespace = :namespace AND t.kind = :kind AND t.name IN (:names)
) AS found
GROUP BY item_id ORDER BY count(*) DESC, item_id DESC LIMIT :most
"""

COMMON = """
SELECT t.name, count(*) AS issues FROM tracker_trait t
WHERE t.org = :org AND t.namespace = :namespace AND t.kind = :kind AND t.name IN (:names)
GROUP BY t.name
"""

EVERY_TIME = 2**62
"""A moment after every other."""

EARLIEST_US = -EVERY_TIME

NO_NUMBER = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of a list begins: behind this issue."""

    number: int
    item_id: int


BEFORE_ALL = Place(EVERY_TIME, 0)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which issues a read may show.

    Attributes:
        namespace: the one that is read.
        reader: how far the read reaches across users.
        as_of: issues reported after it are left out; microseconds.
        state: `open` or `closed`; empty for either.
        component: of this component alone; empty for any.
        left_out: the number of an issue that is not to be found; 0 for none.
    """

    namespace: str
    reader: Reader
    as_of: int = EVERY_TIME
    state: str = ""
    component: str = ""
    left_out: int = NO_NUMBER

    def params(self) -> Mapping[str, Param]:
        """The parameters of `VISIBLE`."""
        return {
            "namespace": self.namespace,
            "as_of": self.as_of,
            **conditions.reach_params(self.reader),
            "any_state": int(not self.state),
            "state": self.state,
            "any_component": int(not self.component),
            "component": self.component,
            "left_out": self.left_out,
        }


def lock(tx: Transaction, namespace: str, number: int) -> None:
    """Keep others from writing the issue until the transaction ends."""
    namespaces.enter(tx, namespace)
    tx.lock("tracker", namespace, str(number))


def exact(tx: Transaction, namespace: str, user_id: str, number: int) -> Issue | None:
    """The user's own issue of this number."""
    row = tx.row(EXACT, namespace=namespace, user_id=user_id, number=number)
    return None if row is None else issue_of(row)


def read(tx: Transaction, namespace: str, number: int, reader: Reader) -> Issue | None:
    """The issue of this number that the reader may see: the reader's own before that of no user."""
    seen = [
        one for row in tx.rows(OF_NUMBER, namespace=namespace, number=number) if (one := issue_of(row)).seen_by(reader)
    ]
    own = (one for one in seen if one.user_id == reader.user_id)
    return next(own, seen[0] if seen else None)


def put(tx: Transaction, issue: Issue, run_id: str) -> None:
    """Write the row and its traits, in place of those that were there."""
    content = issue.content
    tx.run(
        PUT,
        item_id=issue.item_id,
        namespace=issue.namespace,
        user_id=issue.user_id,
        number=content.number,
        agent=issue.agent,
        session_id=issue.session_id,
        run_id=run_id,
        stamp=issue.stamp,
        title=content.title,
        body=content.body,
        state=content.state,
        component=content.component,
        version=content.version,
        labels=json.dumps(content.labels, ensure_ascii=False),
        url=content.url,
        duplicate_of=content.duplicate_of,
        created_at=content.created_at,
        updated_at=content.updated_at,
        traits=rules.encoded(content.traits),
    )
    tx.run(FORGET_TRAITS, item_id=issue.item_id)
    tx.run_many(
        ADD_TRAIT,
        [
            {"namespace": issue.namespace, "kind": kind, "name": name, "item_id": issue.item_id}
            for kind, name in rules.names(content.traits)
        ],
    )


def forget(tx: Transaction, item_id: int) -> None:
    """Remove the row and its traits."""
    tx.run(FORGET_TRAITS, item_id=item_id)
    tx.run(FORGET, item_id=item_id)


def purge(tx: Transaction, namespace: str) -> int:
    """Remove every row of a namespace; how many issues there were."""
    tx.run(PURGE_TRAITS, namespace=namespace)
    return tx.run(PURGE, namespace=namespace)


def seen(tx: Transaction, where: Filter, ids: Sequence[int]) -> set[int]:
    """Those of the ids that the filter lets through."""
    return {cast("int", row["item_id"]) for row in tx.rows(SEEN, ids=list(ids), **where.params())} if ids else set()


def visible(tx: Transaction, where: Filter, page: int = candidates.PAGE_IDS) -> Iterator[Collection[int]]:
    """The ids of everything that the filter lets through, in pages."""

    def read(place: tuple[int, int], most: int) -> list[tuple[tuple[int, int], int | None]]:
        at, after = place
        rows = tx.rows(VISIBLE_PAGE, at=at, after=after, most=most, **where.params())
        return [
            ((cast("int", row["created_at"]), cast("int", row["item_id"])), cast("int", row["item_id"])) for row in rows
        ]

    return candidates.pages(read, (EARLIEST_US, 0), page)


def by_ids(tx: Transaction, where: Filter, ids: Sequence[int]) -> Mapping[int, Issue]:
    """Those of the issues that the filter lets through, by id."""
    if not ids:
        return {}
    return {cast("int", row["item_id"]): issue_of(row) for row in tx.rows(BY_IDS, ids=list(ids), **where.params())}


def listed(tx: Transaction, where: Filter, after: Place, most: int) -> list[Issue]:
    """The next issues that the filter lets through, at most `most`, the highest number first."""
    rows = tx.rows(LISTED, number=after.number, item_id=after.item_id, most=most, **where.params())
    return [issue_of(row) for row in rows]


def by_numbers(tx: Transaction, where: Filter, numbers: Sequence[int]) -> list[int]:
    """The ids of issues of these numbers that the filter lets through."""
    if not numbers:
        return []
    return [cast("int", row["item_id"]) for row in tx.rows(BY_NUMBERS, numbers=list(numbers), **where.params())]


def for_work(tx: Transaction, ids: Sequence[int]) -> Mapping[int, Issue]:
    """Issues by id, whoever may see them; for jobs."""
    return {cast("int", row["item_id"]): issue_of(row) for row in tx.rows(FOR_WORK, ids=list(ids))} if ids else {}


def count(tx: Transaction, where: Filter) -> int:
    """How many issues the filter lets through."""
    if where.reader.scope is ReadScope.NAMESPACE and not (where.state or where.component or where.left_out):
        row = tx.row(COUNT_EVERY, namespace=where.namespace, as_of=where.as_of)
    else:
        row = tx.row(COUNT, **where.params())
    return cast("int", row["total"]) if row else 0


def sharing(tx: Transaction, namespace: str, kind: str, names: Sequence[str], most: int) -> list[int]:
    """Ids of issues that have traits of these names; those with the most of them first."""
    if not names:
        return []
    rows = tx.rows(SHARING, namespace=namespace, kind=kind, names=list(names), most=most)
    return [cast("int", row["item_id"]) for row in rows]


def common(tx: Transaction, namespace: str, kind: str, names: Sequence[str]) -> Mapping[str, int]:
    """Of each name, how many issues of the namespace have it."""
    if not names:
        return {}
    rows = tx.rows(COMMON, namespace=namespace, kind=kind, names=list(names))
    return {cast("str", row["name"]): cast("int", row["issues"]) for row in rows}


def issue_of(row: Row) -> Issue:
    """A row as an issue."""
    return Issue(
        item_id=cast("int", row["item_id"]),
        namespace=cast("str", row["namespace"]),
        user_id=cast("str", row["user_id"]),
        agent=cast("str", row["agent"]),
        session_id=cast("str", row["session_id"]),
        stamp=cast("int", row["stamp"]),
        content=Content(
            number=cast("int", row["number"]),
            title=cast("str", row["title"]),
            body=cast("str", row["body"]),
            state=cast("str", row["state"]),
            component=cast("str", row["component"]),
            version=cast("str", row["version"]),
            labels=tuple(cast("list[str]", json.loads(cast("str", row["labels"])))),
            url=cast("str", row["url"]),
            duplicate_of=cast("int | None", row["duplicate_of"]),
            created_at=cast("int", row["created_at"]),
            updated_at=cast("int | None", row["updated_at"]),
            traits=rules.decoded(cast("str", row["traits"])),
        ),
    )
