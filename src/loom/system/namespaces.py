"""namespace.create, .list, .update and .delete: the named parts of an org."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from loom.access import namespaces
from loom.access.caller import Caller, Role
from loom.access.namespaces import Namespace, NamespaceKind
from loom.errors import Conflict, Denied, NotFound, Rejected
from loom.ledger import writes
from loom.ops import idempotency
from loom.ops.fields import Instant, instant
from loom.ops.spec import IDENTITY_LENGTH_MAX, NONE, Answer, AnyOp, Context, Kind, Op, ServerRequest
from loom.ops.text_checks import has_control
from loom.planes.profile import activity
from loom.storage.interface import Transaction

DESCRIPTION_LENGTH_MAX = 4096

Purge = Callable[[Transaction, str], int]
"""Removes what a plane keeps in a namespace, with its indexes; how many items went."""


def _named(value: str) -> str:
    if has_control(value):
        raise ValueError("control characters are not allowed")
    if value == NONE:
        raise ValueError("'-' stands for none; choose another")
    return value


Name = Annotated[str, Field(min_length=1, max_length=IDENTITY_LENGTH_MAX), AfterValidator(_named)]
Description = Annotated[str, Field(max_length=DESCRIPTION_LENGTH_MAX)]


class NamespaceAnswer(Answer):
    """One namespace."""

    name: Annotated[str, Field(description="The namespace.")]
    kind: Annotated[NamespaceKind, Field(description="What it holds.")]
    description: Annotated[str, Field(description="What it is for, in a person's words.")]
    created_at: Annotated[Instant, Field(description="When it was made, or first written to.")]
    last_version: Annotated[int, Field(description="The version of the last write to it; 0 when there was none.")]


class CreateRequest(ServerRequest):
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


class UpdateRequest(ServerRequest):
    """What namespace.update takes."""

    name: Annotated[Name, Field(description="The namespace to describe anew.")]
    description: Annotated[Description, Field(description="What it is for, from now on.")]


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
    return _shown(ctx, request.name)


def list_namespaces(ctx: Context, request: ListRequest) -> ListAnswer:
    """Show those the caller reaches."""
    found = namespaces.listed(ctx.tx, ctx.caller.namespaces, request.kind)
    return ListAnswer(namespaces=[_answer(space) for space in found])


def update(ctx: Context, request: UpdateRequest) -> NamespaceAnswer:
    """Describe anew."""
    _check_reach(ctx.caller, request.name)
    namespaces.describe(ctx.tx, request.name, request.description)
    return _shown(ctx, request.name)


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
        if request.confirm != request.name:
            raise Rejected("confirm: repeat the name to delete the namespace with all that is in it", field="confirm")
        if not namespaces.delete(ctx.tx, request.name):
            raise _missing()
        items = writes.purge_namespace(ctx.tx, request.name)
        activity.forget_namespace(ctx.tx, request.name)
        for op in ("knowledge.add", "conversation.append"):
            idempotency.forget_text(ctx.tx, op, {"namespace": request.name})
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
    return _answer(space)


def _answer(space: Namespace) -> NamespaceAnswer:
    return NamespaceAnswer(
        name=space.name,
        kind=space.kind,
        description=space.description,
        created_at=instant(space.created_at),
        last_version=space.last_version,
    )


CREATE = Op(
    name="namespace.create",
    summary="Make a namespace of a kind; a memory namespace also comes into being when it is first written to.",
    takes=CreateRequest,
    gives=NamespaceAnswer,
    role=Role.WRITER,
    kind=Kind.WRITE,
    run=create,
    example={"name": "project-x", "description": "What we know about project X."},
    raises=(Conflict, Denied),
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
    summary="Describe a namespace anew.",
    takes=UpdateRequest,
    gives=NamespaceAnswer,
    role=Role.WRITER,
    kind=Kind.IDEMPOTENT,
    run=update,
    example={"name": "project-x", "description": "Project X, finished in May."},
    raises=(NotFound, Denied),
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
        run=Deleting(purges).delete,
        example={"name": "project-x", "confirm": "project-x"},
        raises=(NotFound, Denied),
        toolsets=frozenset(),
        destructive=True,
    )
