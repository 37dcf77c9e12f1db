"""Issues as lines of an export. What a report names is read out of it again, but for its frames, which may be given."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field

from loom.access import namespaces
from loom.errors import Rejected
from loom.ops.spec import Context
from loom.planes import cargo
from loom.planes.cargo import Cargo, Carried, IdentityText, Key, Line, Moment, Reach, Stamp
from loom.planes.tracker import embeds, fields, store, traits, writing
from loom.planes.tracker.rules import Content, Issue
from loom.planes.tracker.traces import NAME_CHARACTERS_MAX, Frame
from loom.storage.interface import Row, Transaction

FROM = """
SELECT i.item_id, i.namespace, i.user_id, i.agent, i.session_id, i.run_id, i.stamp, i.number, i.title, i.body, i.state,
    i.component, i.version, i.labels, i.url, i.duplicate_of, i.created_at, i.updated_at, i.traits
FROM tracker_issue i
WHERE i.org = :org AND (:every = 1 OR i.namespace IN (:namespaces)) AND i.item_id > :after
ORDER BY i.item_id LIMIT :most
"""

COUNT = """
SELECT count(*) AS total FROM tracker_issue WHERE org = :org AND (:every = 1 OR namespace IN (:namespaces))
"""

FrameName = Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)]


class IssueLine(Line):
    """An issue."""

    KIND: ClassVar[str] = "issue"

    kind: Literal["issue"]
    item_id: Stamp
    namespace: IdentityText
    user_id: IdentityText
    agent: IdentityText
    session_id: IdentityText = "-"
    run_id: IdentityText = "-"
    stamp: Stamp
    number: fields.Number
    title: fields.Title
    body: fields.Body = ""
    state: fields.State
    component: fields.Name = ""
    version: fields.Name = ""
    labels: fields.Names = Field(default_factory=list[str])
    url: fields.Url = ""
    duplicate_of: fields.Number | None = None
    created_at: Moment
    updated_at: Moment | None = None
    frames: Annotated[
        list[Annotated[list[FrameName], Field(min_length=2, max_length=2)]], Field(max_length=traits.EACH_MAX)
    ] = Field(default_factory=list[list[str]])


@dataclass(frozen=True, slots=True)
class Made:
    """A line as an issue, and the task it was written in."""

    issue: Issue
    run_id: str


def read(tx: Transaction, reach: Reach, after: Key) -> Iterator[Carried]:
    """Issues by their ids."""

    def fetch(item_id: int) -> Sequence[Row]:
        return tx.rows(FROM, after=item_id, most=cargo.AT_ONCE, **reach.params())

    for row in cargo.in_order(fetch, lambda row: cast("int", row["item_id"]), int(after[0])):
        yield Carried(line_of(row), (cast("int", row["item_id"]),), len(cast("str", row["body"])))


def line_of(row: Row) -> IssueLine:
    """A row as a line."""
    issue = store.issue_of(row)
    content = issue.content
    return IssueLine.model_validate(
        cargo.fields_of(IssueLine, issue)
        | cargo.fields_of(IssueLine, content)
        | {
            "kind": "issue",
            "run_id": row["run_id"],
            "labels": list(content.labels),
            "frames": [[frame.function, frame.file] for frame in content.traits.frames],
        }
    )


def ready(line: IssueLine) -> Made:
    """The line as an issue.

    Raises:
        Rejected: a frame names no function, or its id is above its stamp.
    """
    if any(not function for function, _ in line.frames):
        raise Rejected("frames: a frame names a function", field="frames")
    if line.item_id > line.stamp:
        raise Rejected("stamp: lies before the issue's own id", field="stamp")
    frames = tuple(dict.fromkeys(Frame(function, file) for function, file in line.frames))
    content = Content(
        number=line.number,
        title=line.title,
        body=line.body,
        state=line.state,
        component=line.component,
        version=line.version,
        labels=tuple(dict.fromkeys(line.labels)),
        url=line.url,
        duplicate_of=line.duplicate_of,
        created_at=line.created_at,
        updated_at=line.updated_at,
        traits=replace(traits.parsed(f"{line.title}\n{line.body}"), frames=frames),
    )
    issue = Issue(
        item_id=line.item_id,
        namespace=line.namespace,
        user_id=line.user_id,
        agent=line.agent,
        session_id=line.session_id,
        stamp=line.stamp,
        content=content,
    )
    return Made(issue, line.run_id)


def take(ctx: Context, made: Made) -> bool:
    """Write the issue, unless what is here is as new.

    Raises:
        Rejected: the number is another issue's, or the id another number's, or the same write says something else.
    """
    issue = made.issue
    cargo.check_reached(ctx, issue.namespace)
    cargo.check_not_ahead(ctx, issue.stamp, field="stamp")
    store.lock(ctx.tx, issue.namespace, issue.content.number)
    there = store.exact(ctx.tx, issue.namespace, issue.user_id, issue.content.number)
    if there is not None and there.item_id != issue.item_id:
        raise Rejected("number: another issue has this number here", field="number")
    if there is None and store.for_work(ctx.tx, [issue.item_id]):
        raise Rejected("item_id: another issue has this id here", field="item_id")
    if there is not None and there.stamp >= issue.stamp:
        if there.stamp == issue.stamp and replace(there.content, traits=issue.content.traits) != issue.content:
            raise Rejected("stamp: the issue is here with another content of the same write", field="stamp")
        return False
    ctx.tx.outstrip(issue.stamp)
    store.put(ctx.tx, issue, made.run_id)
    embeds.index(ctx.tx, issue, "", None)
    namespaces.touch(ctx.tx, issue.namespace, issue.stamp, writing.KIND)
    return True


CARGO = Cargo(IssueLine, (0,), COUNT, read, ready, take)
