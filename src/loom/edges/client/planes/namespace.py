# Generated from the registry by `make docs`. Do not edit.
"""The operations of `namespace` as methods."""

from typing import Unpack

from loom.edges.client.planes.namespace_fields import (
    NamespaceCreateFields,
    NamespaceDeleteFields,
    NamespaceListFields,
    NamespaceUpdateFields,
)
from loom.edges.client.running import AsyncRun, Run
from loom.system.namespaces import DeleteAnswer, ListAnswer, NamespaceAnswer


class Namespace:
    """The operations of `namespace`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def create(self, **fields: Unpack[NamespaceCreateFields]) -> NamespaceAnswer:
        """Make a namespace of a kind; a memory namespace also comes into being when it is first written to."""
        return self._run("namespace.create", NamespaceAnswer, fields)

    def delete(self, **fields: Unpack[NamespaceDeleteFields]) -> DeleteAnswer:
        """Delete a namespace with every memory, section, document, conversation and version in it, for good."""
        return self._run("namespace.delete", DeleteAnswer, fields)

    def list(self, **fields: Unpack[NamespaceListFields]) -> ListAnswer:
        """See the namespaces you reach."""
        return self._run("namespace.list", ListAnswer, fields)

    def update(self, **fields: Unpack[NamespaceUpdateFields]) -> NamespaceAnswer:
        """Describe a namespace anew, or bind it to the repository and the tracker that it stands for."""
        return self._run("namespace.update", NamespaceAnswer, fields)


class AsyncNamespace:
    """The operations of `namespace`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def create(self, **fields: Unpack[NamespaceCreateFields]) -> NamespaceAnswer:
        """Make a namespace of a kind; a memory namespace also comes into being when it is first written to."""
        return await self._run("namespace.create", NamespaceAnswer, fields)

    async def delete(self, **fields: Unpack[NamespaceDeleteFields]) -> DeleteAnswer:
        """Delete a namespace with every memory, section, document, conversation and version in it, for good."""
        return await self._run("namespace.delete", DeleteAnswer, fields)

    async def list(self, **fields: Unpack[NamespaceListFields]) -> ListAnswer:
        """See the namespaces you reach."""
        return await self._run("namespace.list", ListAnswer, fields)

    async def update(self, **fields: Unpack[NamespaceUpdateFields]) -> NamespaceAnswer:
        """Describe a namespace anew, or bind it to the repository and the tracker that it stands for."""
        return await self._run("namespace.update", NamespaceAnswer, fields)
