"""A namespace's own row and its binding as a line of an export."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from loom.access import namespaces
from loom.access.namespaces import Binding, Namespace, NamespaceKind
from loom.errors import Rejected
from loom.ops.spec import IDENTITY_LENGTH_MAX, Context
from loom.planes import cargo
from loom.planes.cargo import Cargo, Carried, IdentityText, Key, Line, Moment, Reach, Stamp
from loom.storage.interface import Transaction

DESCRIPTION_LENGTH_MAX = 10_000

COUNT = """
SELECT count(*) AS total FROM namespace WHERE org = :org AND (:every = 1 OR name IN (:namespaces))
"""


class NamespaceLine(Line):
    """A namespace's own row. Files of before bindings were carried have none, and no version."""

    KIND: ClassVar[str] = "namespace"

    kind: Literal["namespace"]
    name: IdentityText
    namespace_kind: NamespaceKind
    description: Annotated[str, Field(max_length=DESCRIPTION_LENGTH_MAX)] = ""
    created_at: Moment
    last_version: Stamp | None = None
    repository: Annotated[str, Field(max_length=namespaces.REPOSITORY_LENGTH_MAX), AfterValidator(cargo.printable)] = ""
    tracker: Annotated[str, Field(max_length=IDENTITY_LENGTH_MAX), AfterValidator(cargo.printable)] = ""


def line_of(space: Namespace, bound: Binding | None) -> NamespaceLine:
    """A namespace as a line."""
    return NamespaceLine(
        kind="namespace",
        name=space.name,
        namespace_kind=space.kind,
        description=space.description,
        created_at=space.created_at,
        last_version=space.last_version or None,
        repository=bound.repository if bound else "",
        tracker=bound.tracker if bound else "",
    )


def read(tx: Transaction, reach: Reach, after: Key) -> Iterator[Carried]:
    """Namespaces by name."""
    while True:
        found = namespaces.after(tx, reach.names, str(after[0]), cargo.AT_ONCE)
        for space in found:
            after = (space.name,)
            yield Carried(line_of(space, namespaces.binding(tx, space.name)), after, len(space.description))
        if len(found) < cargo.AT_ONCE:
            return


def take(ctx: Context, line: NamespaceLine) -> bool:
    """Make the namespace; of one that is there, fill in the description and the binding that it lacks."""
    cargo.check_reached(ctx, line.name)
    version = line.last_version or 0
    cargo.check_not_ahead(ctx, version, field="last_version")
    there = namespaces.read(ctx.tx, line.name)
    kind = there.kind if there else line.namespace_kind
    if (line.repository and kind not in ("code", "tracker")) or (line.tracker and kind != "code"):
        raise Rejected(f"repository: a namespace of kind {kind} is not bound so", field="repository")
    bound = namespaces.binding(ctx.tx, line.name)
    changed = there is None
    if there is None:
        namespaces.create(ctx.tx, line.name, line.namespace_kind, line.description, line.created_at)
    elif line.description and not there.description:
        changed = namespaces.describe(ctx.tx, line.name, line.description)
    if bound is None and (line.repository or line.tracker):
        namespaces.bind(ctx.tx, line.name, line.repository, line.tracker)
        changed = True
    if version > (there.last_version if there else 0):
        ctx.tx.outstrip(version)
        namespaces.touch(ctx.tx, line.name, version, line.namespace_kind)
        changed = True
    return changed


CARGO = Cargo(NamespaceLine, ("",), COUNT, read, cargo.as_it_is, take)
