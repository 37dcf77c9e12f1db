"""namespace.create, .list, .update and .delete: the named parts of an org."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from loom.access import namespaces
from loom.access.caller import Caller, Role
from loom.access.namespaces import Binding, Namespace, NamespaceKind
from loom.errors import Conflict, Denied, NotFound, Rejected
from loom.ledger import writes
from loom.ops import audit, idempotency
from loom.ops.fields import Instant, instant
from loom.ops.spec import (
    IDENTITY_LENGTH_MAX,
    NONE,
    Answer,
    AnyOp,
    Audited,
    Context,
    Kind,
    Op,
    Prepare,
    ServerRequest,
    prepared_as,
)
from loom.ops.text_checks import has_control
from loom.planes.profile import activity
from loom.storage.interface import Transaction

DESCRIPTION_LENGTH_MAX = 4096

TOLD_AGAIN: Final[Mapping[str, tuple[str, ...]]] = {
    "knowledge.add": ("title", "tags"),
    "conversation.append": ("title",),
    "memory.lock": ("lock_reason",),
    "memory.pin": ("lock_reason",),
    "memory.touch": ("lock_reason",),
}
"""What answers repeat of texts that were sent, which goes with what it was about."""

Purge = Callable[[Transaction, str], int]
"""Removes what a plane keeps in a namespace, with its indexes; how many items went."""


def _named(value: str) -> str:
    if has_control(value):
        raise ValueError("control characters are not allowed")
    if value == NONE:
        raise ValueError("'-' stands for none; choose another")
    return value


Name = Annotated[str, Field(min_length=1, max_length=IDENTITY_LENGTH_MAX), AfterValidator(_named)]


def _repository(value: str) -> str:
    if has_control(value):
        raise ValueError("control characters are not allowed")
    if value and not namespaces.repository_key(value):
        raise ValueError("should be a repository's address, or its owner/name")
    return value


Repository = Annotated[str, Field(max_length=namespaces.REPOSITORY_LENGTH_MAX), AfterValidator(_repository)]
Tracker = Annotated[str, Field(max_length=IDENTITY_LENGTH_MAX)]
Description = Annotated[str, Field(max_length=DESCRIPTION_LENGTH_MAX)]


class NamespaceAnswer(Answer):
    """One namespace."""

    name: Annotated[str, Field(description="The namespace.")]
    kind: Annotated[NamespaceKind, Field(description="What it holds.")]
    description: Annotated[str, Field(description="What it is for, in a person's words.")]
    created_at: Annotated[Instant, Field(description="When it was made, or first written to.")]
    last_version: Annotated[int, Field(description="The version of the last write to it; 0 when there was none.")]
    repository: Annotated[
        str, Field(description="The repository that a code or tracker namespace stands for; empty for none.")
    ]
    tracker: Annotated[
        str,
        Field(
            description="The tracker namespace that a code namespace asks; empty for the one of the same repository, "
            "and where the caller does not reach it."
        ),
    ]


class BindingRequest(ServerRequest):
    """What namespace.create and namespace.update take to bind a namespace; admins alone may."""

    repository: Annotated[
        Repository | None,
        Field(
            description="Bind a code or tracker namespace to this repository, an address or owner/name; empty removes "
            "the binding, null leaves it. Admins only."
        ),
    ] = None
    tracker: Annotated[
        Tracker | None,
        Field(
            description="The tracker namespace that a code namespace asks about defects; empty for the one of the same "
            "repository, null leaves it. Admins only."
        ),
    ] = None


class CreateRequest(BindingRequest):
    """What namespace.create takes."""

    name: Annotated[Name, Field(description="The namespace, 1 to 256 characters.")]
    kind: Annotated[NamespaceKind, Field(description="What it is to hold.")] = "memory"
    description: Annotated[Description, Field(description="What it is for.")] = ""


class ListRequest(ServerRequest):
    """What namespace.list takes."""

    kind: Annotated[
        Literal["", "memory", "code", "tracker", "knowledge"], Field(description="Only of this kind; empty for all.")
    ] = ""


class ListAnswer(Answer):
    """What namespace.list answers."""

    namespaces: Annotated[
        list[NamespaceAnswer],
        Field(description="At most 1,000 namespaces that the caller reaches, the last written first."),
    ]


class UpdateRequest(BindingRequest):
    """What namespace.update takes."""

    name: Annotated[Name, Field(description="The namespace to describe or to bind anew.")]
    description: Annotated[
        Description | None, Field(description="What it is for, from now on; null leaves what is said.")
    ] = None


class DeleteRequest(ServerRequest):
    """What namespace.delete takes."""

    name: Annotated[Name, Field(description="The namespace to delete, with all that is in it.")]
    confirm: Annotated[
        str,
        Field(max_length=IDENTITY_LENGTH_MAX, description="The name once more, to show that it is meant; else 422."),
    ] = ""


class DeleteAnswer(Answer):
    """What namespace.delete answers."""

    name: Annotated[str, Field(description="The namespace that is gone.")]
    items_deleted: Annotated[int, Field(description="How many memories, sections and other items went with it.")]


def create(ctx: Context, request: CreateRequest) -> NamespaceAnswer:
    """Make a namespace."""
    _check_reach(ctx.caller, request.name)
    if not namespaces.create(ctx.tx, request.name, request.kind, request.description, ctx.now_us):
        raise Conflict("name: there is a namespace of this name", field="name")
    _bind(ctx, request, request.name)
    return _shown(ctx, request.name)


def list_namespaces(ctx: Context, request: ListRequest) -> ListAnswer:
    """Show those the caller reaches."""
    found = namespaces.listed(ctx.tx, ctx.caller.namespaces, request.kind)
    bound = namespaces.bindings(ctx.tx, [space.name for space in found])
    return ListAnswer(namespaces=[_answer(ctx.caller, space, bound.get(space.name)) for space in found])


def update(ctx: Context, request: UpdateRequest) -> NamespaceAnswer:
    """Describe or bind anew."""
    if request.description is None and request.repository is None and request.tracker is None:
        raise Rejected("description: send description, repository or tracker", field="description")
    _check_reach(ctx.caller, request.name)
    if request.description is not None:
        namespaces.describe(ctx.tx, request.name, request.description)
    _bind(ctx, request, request.name)
    return _shown(ctx, request.name)


@dataclass(frozen=True, slots=True)
class Found:
    """Whether the tracker namespace that a request names is there."""

    tracker: bool


def found_tracker(prepare: Prepare, request: BindingRequest) -> Found:
    """Look for the tracker namespace where the caller's issues are kept.

    Raises:
        Denied: the token does not reach it, or may bind nothing.
    """
    if request.repository is None and request.tracker is None:
        return Found(tracker=False)
    if prepare.caller.role < Role.ADMIN:
        raise Denied("repository: a namespace is bound by admins only; leave repository and tracker out")
    if not request.tracker:
        return Found(tracker=False)
    if not prepare.caller.reaches(request.tracker):
        raise Denied("tracker: this token does not reach the namespace", field="tracker")
    with prepare.read(prepare.org_of("tracker", request.org)) as tx:
        space = namespaces.read(tx, request.tracker)
    return Found(tracker=space is not None and space.kind == "tracker")


def _bind(ctx: Context, request: BindingRequest, name: str) -> None:
    """Bind the namespace as the request says.

    Raises:
        Rejected: a namespace of its kind is not bound so, or there is no such tracker namespace.
    """
    space = namespaces.read(ctx.tx, name)
    if (request.repository is None and request.tracker is None) or space is None:
        return
    bound = namespaces.binding(ctx.tx, name)
    repository = request.repository if request.repository is not None else bound.repository if bound else ""
    # What goes without a repository goes with it.
    tracker = request.tracker if request.tracker is not None else bound.tracker if bound and repository else ""
    if repository and space.kind not in ("code", "tracker"):
        raise Rejected(f"repository: a namespace of kind {space.kind} stands for none", field="repository")
    if tracker and space.kind != "code":
        raise Rejected("tracker: only a namespace of kind code asks a tracker", field="tracker")
    if tracker and not repository:
        raise Rejected("tracker: bind the namespace to a repository as well", field="tracker")
    if request.tracker and not prepared_as(ctx, Found).tracker:
        raise Rejected("tracker: there is no namespace of kind tracker of this name", field="tracker")
    if repository:
        namespaces.bind(ctx.tx, name, repository, tracker)
    else:
        namespaces.unbind(ctx.tx, name)


@dataclass(frozen=True, slots=True)
class Deleting:
    """Deletes a namespace from the ledger, and from the planes that keep rows of their own.

    Attributes:
        purges: one of each such plane.
    """

    purges: Sequence[Purge]

    def delete(self, ctx: Context, request: DeleteRequest) -> DeleteAnswer:
        """Remove the namespace and all that is in it, for good."""
        _check_reach(ctx.caller, request.name)
        if not ctx.caller.reaches_everybody:
            raise Denied("name: this token does not reach every user's, agent's and session's rows in it", field="name")
        if request.confirm != request.name:
            raise Rejected("confirm: repeat the name to delete the namespace with all that is in it", field="confirm")
        namespaces.close(ctx.tx, request.name)
        if not namespaces.delete(ctx.tx, request.name):
            raise _missing()
        items = writes.purge_namespace(ctx.tx, request.name)
        activity.forget_namespace(ctx.tx, request.name)
        audit.forget_names(ctx.tx, request.name)
        for op, fields in TOLD_AGAIN.items():
            idempotency.forget_text(ctx.tx, op, {"namespace": request.name}, *fields)
        for op in ("namespace.create", "namespace.update"):
            idempotency.forget_text(ctx.tx, op, {"name": request.name}, "description")
        items += sum(purge(ctx.tx, request.name) for purge in self.purges)
        return DeleteAnswer(name=request.name, items_deleted=items)


def _check_reach(caller: Caller, name: str) -> None:
    if not caller.reaches(name):
        raise Denied("name: this token does not reach the namespace", field="name")


def _missing() -> NotFound:
    return NotFound("name: there is no such namespace; namespace.list shows them", field="name")


def _shown(ctx: Context, name: str) -> NamespaceAnswer:
    space = namespaces.read(ctx.tx, name)
    if space is None:
        raise _missing()
    return _answer(ctx.caller, space, namespaces.binding(ctx.tx, name))


def _answer(caller: Caller, space: Namespace, bound: Binding | None) -> NamespaceAnswer:
    return NamespaceAnswer(
        name=space.name,
        kind=space.kind,
        description=space.description,
        created_at=instant(space.created_at),
        last_version=space.last_version,
        repository=bound.repository if bound else "",
        tracker=bound.tracker if bound and caller.reaches(bound.tracker) else "",
    )


CREATE = Op(
    name="namespace.create",
    summary="Make a namespace of a kind; a memory namespace also comes into being when it is first written to.",
    takes=CreateRequest,
    gives=NamespaceAnswer,
    role=Role.WRITER,
    kind=Kind.WRITE,
    run=create,
    prepare=found_tracker,
    example={"name": "project-x", "description": "What we know about project X."},
    raises=(Conflict, Denied),
    audited=Audited(about=("name", "kind"), namespace="name"),
)

LIST = Op(
    name="namespace.list",
    summary="See the namespaces you reach.",
    takes=ListRequest,
    gives=ListAnswer,
    role=Role.VIEWER,
    kind=Kind.READ,
    run=list_namespaces,
    example={},
)

UPDATE = Op(
    name="namespace.update",
    summary="Describe a namespace anew, or bind it to the repository and the tracker that it stands for.",
    takes=UpdateRequest,
    gives=NamespaceAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=update,
    prepare=found_tracker,
    example={"name": "project-x", "description": "Project X, finished in May."},
    raises=(NotFound, Denied),
    audited=Audited(about=("name",), namespace="name"),
)


def ops(purges: Sequence[Purge] = ()) -> tuple[AnyOp, ...]:
    """The operations; `purges` are the planes' own part of namespace.delete."""
    return (CREATE, LIST, UPDATE, deleting(purges))


def deleting(purges: Sequence[Purge]) -> Op[DeleteRequest, DeleteAnswer]:
    """namespace.delete, which has every plane remove its own."""
    return Op(
        name="namespace.delete",
        summary="Delete a namespace with every memory, section, document, conversation and version in it, for good.",
        takes=DeleteRequest,
        gives=DeleteAnswer,
        role=Role.ADMIN,
        kind=Kind.IDEMPOTENT,
        audited=Audited(about=("name",), outcome=("items_deleted",), namespace="name"),
        run=Deleting(purges).delete,
        example={"name": "project-x", "confirm": "project-x"},
        raises=(NotFound, Denied),
        toolsets=frozenset(),
        destructive=True,
    )
