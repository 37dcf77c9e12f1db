# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `namespace`."""

from typing import Literal, NotRequired, Required

from loom.edges.client.core import Identity


class NamespaceCreateFields(Identity):
    """What `namespace.create` takes."""

    repository: NotRequired[str | None]
    """Bind a code or tracker namespace to this repository, an address or owner/name; empty removes..."""
    tracker: NotRequired[str | None]
    """The tracker namespace that a code namespace asks about defects; empty for the one of the..."""
    name: Required[str]
    """The namespace, 1 to 256 characters."""
    kind: NotRequired[Literal["memory", "code", "tracker", "knowledge"]]
    """What it is to hold."""
    description: NotRequired[str]
    """What it is for."""


class NamespaceDeleteFields(Identity):
    """What `namespace.delete` takes."""

    name: Required[str]
    """The namespace to delete, with all that is in it."""
    confirm: NotRequired[str]
    """The name once more, to show that it is meant; else 422."""


class NamespaceListFields(Identity):
    """What `namespace.list` takes."""

    kind: NotRequired[Literal["", "memory", "code", "tracker", "knowledge"]]
    """Only of this kind; empty for all."""


class NamespaceUpdateFields(Identity):
    """What `namespace.update` takes."""

    repository: NotRequired[str | None]
    """Bind a code or tracker namespace to this repository, an address or owner/name; empty removes..."""
    tracker: NotRequired[str | None]
    """The tracker namespace that a code namespace asks about defects; empty for the one of the..."""
    name: Required[str]
    """The namespace to describe or to bind anew."""
    description: NotRequired[str | None]
    """What it is for, from now on; null leaves what is said."""
