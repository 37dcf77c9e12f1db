"""tracker.add, tracker.import and tracker.delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, WithJsonSchema

from loom.access import namespaces
from loom.access.caller import Role
from loom.errors import Denied, LoomError, Rejected
from loom.ops import invalid
from loom.ops.fields import EMBEDDER
from loom.ops.spec import Answer, Audited, Context, Kind, Op, OpenRequest, Prepare, prepared_as
from loom.planes.tracker import github, store, writing
from loom.planes.tracker.fields import IssueFields, Number, reader_of
from loom.planes.tracker.rules import Content
from loom.planes.tracker.writing import ADDED, KIND, UNCHANGED, UPDATED, Ready

ITEMS_MAX = 500
ITEMS_SCHEMA: Mapping[str, object] = {
    "type": "array",
    "minItems": 1,
    "maxItems": ITEMS_MAX,
    "items": {"type": "object", "required": ["number", "title"]},
}

DEGRADED = Field(description="embedder when it was not ready: search by meaning follows. Absent when nothing was lost.")


class AddRequest(OpenRequest, IssueFields):
    """What tracker.add takes."""


class AddAnswer(Answer):
    """What tracker.add answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded"})

    issue_id: Annotated[str, Field(description="The row's id.")]
    number: Annotated[int, Field(description="The issue's number.")]
    outcome: Annotated[
        Literal["added", "updated", "unchanged"], Field(description="What the call did; unchanged wrote nothing.")
    ]
    frame_count: Annotated[
        int, Field(description="How many stack frames it is compared by; tracker.get shows them, with its other names.")
    ]
    degraded: Annotated[list[str] | None, DEGRADED] = None


class ImportRequest(OpenRequest):
    """What tracker.import takes."""

    items: Annotated[
        list[JsonValue],
        Field(
            min_length=1,
            max_length=ITEMS_MAX,
            description="Issues as GitHub's REST API or `gh issue list --json number,title,body,state,labels,createdAt,"
            "updatedAt,url` gives them, or with the fields of tracker.add. Pull requests are left out.",
        ),
        WithJsonSchema(dict(ITEMS_SCHEMA)),
    ]
    repository: Annotated[
        Annotated[str, Field(max_length=namespaces.REPOSITORY_LENGTH_MAX)],
        Field(description="The repository they are of, as owner/name; read from their addresses when left out."),
    ] = ""


class Refusal(BaseModel):
    """Why an item was not imported."""

    model_config = ConfigDict(frozen=True)

    item: Annotated[int, Field(description="Its place in items, from 0.")]
    code: Annotated[str, Field(description="The code of the error.")]
    reason: Annotated[str, Field(description="What does not fit.")]


class ImportAnswer(Answer):
    """What tracker.import answers."""

    ABSENT_WHEN_NONE: ClassVar[frozenset[str]] = frozenset({"degraded"})

    added: Annotated[int, Field(description="Issues that were not here before.")]
    updated: Annotated[int, Field(description="Issues that were here and have changed.")]
    unchanged: Annotated[int, Field(description="Issues that are here as they are, or newer.")]
    pull_requests: Annotated[int, Field(description="Items that are pull requests, which are left out.")]
    refused: Annotated[list[Refusal], Field(description="Items that were not imported; the others are not touched.")]
    repository: Annotated[
        str, Field(description="The repository that the namespace's issues are of; empty if unknown.")
    ]
    embedding_later: Annotated[bool, Field(description="Whether search by meaning follows; search by words is there.")]
    degraded: Annotated[list[str] | None, DEGRADED] = None


class DeleteRequest(OpenRequest):
    """What tracker.delete takes."""

    number: Annotated[Number, Field(description="The issue to delete.")]


class DeleteAnswer(Answer):
    """What tracker.delete answers."""

    number: Annotated[int, Field(description="The issue's number.")]
    deleted: Annotated[bool, Field(description="Whether there was such an issue; it is gone, and not recoverable.")]


@dataclass(frozen=True, slots=True)
class Batch:
    """The items of an import: the issues to write by their place, and what became of the rest."""

    contents: Mapping[int, Content]
    refused: Sequence[Refusal]
    pull_requests: int
    repository: str
    ready: Ready


def ready_to_add(prepare: Prepare, request: AddRequest) -> Ready:
    """Read the report's names and embed it."""
    return writing.made_ready(prepare, [writing.content_of(request)])


def add(ctx: Context, request: AddRequest) -> AddAnswer:
    """Write the issue, or bring it up to date."""
    ready = prepared_as(ctx, Ready)
    written = writing.put(ctx, request, ready.contents[0], ready)
    return AddAnswer(
        issue_id=written.issue.issue_id,
        number=request.number,
        outcome=cast("Literal['added', 'updated', 'unchanged']", written.outcome),
        # A kept answer outlives the issue, so it repeats nothing that the issue says.
        frame_count=len(written.issue.content.traits.frames),
        degraded=[EMBEDDER] if ready.failed and written.outcome != UNCHANGED else None,
    )


def ready_to_import(prepare: Prepare, request: ImportRequest) -> Batch:
    """Read every item; embed them when they are few. Of an issue that is named twice the last one counts."""
    contents: dict[int, Content] = {}
    refused: list[Refusal] = []
    pull_requests = 0
    repositories: dict[str, None] = {}
    for place, raw in enumerate(request.items):
        try:
            content = item_of(raw)
        except LoomError as error:
            refused.append(Refusal(item=place, code=error.code, reason=error.message))
            continue
        if content is None:
            pull_requests += 1
            continue
        contents[place] = content
        address = github.repository_of(cast("Mapping[str, JsonValue]", raw))
        repositories.setdefault(namespaces.repository_key(address))
    named = [one for one in repositories if one]
    repository = request.repository or (named[0] if len(named) == 1 else "")
    wanted = unknown(prepare, request, list(contents.values()))
    return Batch(contents, refused, pull_requests, repository, writing.made_ready(prepare, wanted))


def unknown(prepare: Prepare, request: ImportRequest, contents: Sequence[Content]) -> Sequence[Content]:
    """The issues whose text is not here yet, so that a repeated import embeds nothing."""
    with prepare.read(request.org) as tx:
        there = {one.number: store.exact(tx, request.namespace, request.user_id, one.number) for one in contents}
    return [
        one
        for one in contents
        if (known := there[one.number]) is None or (known.content.title, known.content.body) != (one.title, one.body)
    ]


def item_of(raw: JsonValue) -> Content | None:
    """One item as an issue; None for a pull request.

    Raises:
        Rejected: it is neither.
    """
    if not isinstance(raw, dict):
        raise Rejected("item: should be an object", field="item")
    if github.is_pull_request(raw):
        return None
    given = {name: value for name, value in github.fields_of(raw).items() if value is not None}
    try:
        return writing.content_of(IssueFields.model_validate(given))
    except ValidationError as error:
        raise invalid.rejected(error, IssueFields, "item") from None


def import_issues(ctx: Context, request: ImportRequest) -> ImportAnswer:
    """Write every issue that fits; locks are taken in one order, so that two imports never wait in a ring."""
    batch = prepared_as(ctx, Batch)
    for number in sorted({content.number for content in batch.contents.values()}):
        store.lock(ctx.tx, request.namespace, number)
    counts = {ADDED: 0, UPDATED: 0, UNCHANGED: 0}
    refused = list(batch.refused)
    for place, content in batch.contents.items():
        try:
            counts[writing.put(ctx, request, content, batch.ready).outcome] += 1
        except Denied as error:
            refused.append(Refusal(item=place, code=error.code, reason=error.message))
    written = counts[ADDED] + counts[UPDATED]
    return ImportAnswer(
        added=counts[ADDED],
        updated=counts[UPDATED],
        unchanged=counts[UNCHANGED],
        pull_requests=batch.pull_requests,
        refused=sorted(refused, key=lambda one: one.item),
        repository=bound_to(ctx, request, batch),
        embedding_later=bool(written and batch.ready.contents and not batch.ready.vectors),
        degraded=[EMBEDDER] if written and batch.ready.failed else None,
    )


def bound_to(ctx: Context, request: ImportRequest, batch: Batch) -> str:
    """Bind the namespace to the items' repository, unless it is bound; the repository it is bound to."""
    there = namespaces.binding(ctx.tx, request.namespace)
    if there is not None and there.repository and not request.repository:
        return there.repository
    if not batch.repository or not batch.contents:
        return there.repository if there else ""
    space = namespaces.read(ctx.tx, request.namespace)
    # A namespace of code is bound to its own repository, by what indexes it.
    if space is not None and space.kind == KIND:
        namespaces.bind(ctx.tx, request.namespace, batch.repository)
    return namespaces.repository_key(batch.repository)


def delete(ctx: Context, request: DeleteRequest) -> DeleteAnswer:
    """Remove the issue; nothing finds it any more."""
    store.lock(ctx.tx, request.namespace, request.number)
    issue = store.exact(ctx.tx, request.namespace, request.user_id, request.number)
    if issue is not None and not issue.seen_by(reader_of(ctx, request)):
        raise Denied("number: the issue belongs to another session than this token reaches", field="number")
    if issue is not None:
        writing.remove(ctx, issue)
    return DeleteAnswer(number=request.number, deleted=issue is not None)


ADD = Op(
    name="tracker.add",
    summary="Keep an issue of a bug tracker under its number, or bring it up to date, so that its repeats are known.",
    takes=AddRequest,
    gives=AddAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=add,
    example={
        "number": 1234,
        "title": "Client.close throws NullPointerException",
        "body": "java.lang.NullPointerException\n\tat org.acme.Client.close(Client.java:123)",
        "component": "client",
        "version": "2.1.0",
    },
    prepare=ready_to_add,
    raises=(Denied,),
    destructive=True,
)

IMPORT = Op(
    name="tracker.import",
    summary="Import up to 500 issues as GitHub gives them; what is here stays, what changed is brought up to date.",
    takes=ImportRequest,
    gives=ImportAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=import_issues,
    example={
        "items": [
            {
                "number": 7,
                "title": "Login fails after an update",
                "body": "It says 401.",
                "state": "OPEN",
                "labels": [{"name": "bug"}],
                "createdAt": "2026-01-31T09:30:00Z",
                "url": "https://github.com/acme/app/issues/7",
            }
        ]
    },
    prepare=ready_to_import,
    destructive=True,
)

DELETE = Op(
    name="tracker.delete",
    summary="Delete an issue for good; no search finds it, and no later report is compared with it.",
    takes=DeleteRequest,
    gives=DeleteAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=delete,
    example={"number": 1234},
    raises=(Denied,),
    destructive=True,
    audited=Audited(about=("number",), outcome=("deleted",)),
)

OPS = (ADD, IMPORT, DELETE)
