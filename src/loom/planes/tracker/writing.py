"""One write path for every issue: locked, compared, then row, names and both indexes in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loom.access import namespaces
from loom.errors import Denied, Rejected
from loom.models.interface import EmbedderFailed
from loom.ops.fields import microseconds_or_none
from loom.ops.spec import Context, Prepare, Request
from loom.planes.tracker import embeds, rules, store, traits
from loom.planes.tracker.fields import IssueFields, reader_of
from loom.planes.tracker.rules import Content, Issue
from loom.planes.tracker.traits import Traits
from loom.storage.indexes import Vector

KIND = "tracker"
ADDED, UPDATED, UNCHANGED = "added", "updated", "unchanged"
NO_VECTORS: Mapping[str, Vector] = {}


@dataclass(frozen=True, slots=True)
class Ready:
    """What was made ready for a write.

    Attributes:
        contents: the issues, `created_at` 0 where it is not known.
        space: the embedding space of `vectors`.
        vectors: by the text they are of; those that are missing are made by a job.
        failed: whether the embedder failed.
    """

    contents: Sequence[Content]
    space: str
    vectors: Mapping[str, Vector]
    failed: bool


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one issue."""

    issue: Issue
    outcome: str


def content_of(fields: IssueFields) -> Content:
    """What was sent, as it is kept.

    Raises:
        Rejected: a frame names no function.
    """
    found = traits.parsed(f"{fields.title}\n{fields.body}")
    if fields.frames is not None:
        found = with_frames(found, fields.frames)
    return Content(
        number=fields.number,
        title=fields.title,
        body=fields.body,
        state=fields.state,
        component=fields.component,
        version=fields.version,
        labels=tuple(dict.fromkeys(fields.labels)),
        url=fields.url,
        duplicate_of=fields.duplicate_of,
        created_at=microseconds_or_none(fields.created_at) or 0,
        updated_at=microseconds_or_none(fields.updated_at),
        traits=found,
    )


def with_frames(found: Traits, frames: Sequence[str]) -> Traits:
    """The traits with these frames in place of those of the text.

    Raises:
        Rejected: a frame names no function.
    """
    try:
        return replace(found, frames=traits.frames_of(frames))
    except ValueError as error:
        raise Rejected(f"frames: {error}", field="frames") from None


def made_ready(prepare: Prepare, contents: Sequence[Content]) -> Ready:
    """Embed what is little enough; a failing embedder is no failure of the write."""
    space = prepare.embedder.space.fingerprint
    texts = [rules.embeddable(content.title, content.body) for content in contents]
    try:
        return Ready(contents, space, embeds.vectors_of(prepare.embedder, texts), failed=False)
    except EmbedderFailed:
        return Ready(contents, space, NO_VECTORS, failed=True)


def put(ctx: Context, request: Request, content: Content, ready: Ready) -> Written:
    """Write one issue, unless that changes nothing.

    Raises:
        Denied: the issue was written in a session that the token does not reach.
    """
    store.lock(ctx.tx, request.namespace, content.number)
    there = store.exact(ctx.tx, request.namespace, request.user_id, content.number)
    if there is not None and not there.seen_by(reader_of(ctx, request)):
        raise Denied("number: the issue belongs to another session than this token reaches", field="number")
    created_at = content.created_at or (there.content.created_at if there else ctx.now_us)
    content = replace(content, created_at=created_at)
    if there is not None and rules.says_nothing_new(there, content):
        return Written(there, UNCHANGED)
    stamp = ctx.tx.stamp()
    issue = Issue(
        item_id=there.item_id if there else stamp,
        namespace=request.namespace,
        user_id=request.user_id,
        agent=request.agent,
        session_id=request.session_id,
        stamp=stamp,
        content=content,
    )
    store.put(ctx.tx, issue, request.run_id)
    vector = ready.vectors.get(rules.embeddable(content.title, content.body))
    embeds.index(ctx.tx, issue, ready.space, vector)
    namespaces.touch(ctx.tx, request.namespace, stamp, KIND)
    return Written(issue, UPDATED if there else ADDED)


def remove(ctx: Context, issue: Issue) -> None:
    """Remove an issue for good: row, names, both indexes."""
    store.forget(ctx.tx, issue.item_id)
    embeds.forget(ctx.tx, issue)
    namespaces.touch(ctx.tx, issue.namespace, ctx.tx.stamp(), KIND)
