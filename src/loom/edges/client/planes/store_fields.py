# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `store`."""

from typing import NotRequired, Required

from loom.canonical import Json
from loom.edges.client.core import Identity


class StoreExportFields(Identity):
    """What `store.export` takes."""

    all_namespaces: NotRequired[bool]
    """Every namespace of the org that the caller reaches, not the named one alone."""
    limit: NotRequired[int]
    """At most this many lines."""
    cursor: NotRequired[str]
    """next_cursor of the answer before; empty for the first."""


class StoreImportFields(Identity):
    """What `store.import` takes."""

    lines: Required[list[Json]]
    """Lines of store.export, as they are."""
