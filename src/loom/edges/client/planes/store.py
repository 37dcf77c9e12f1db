# Generated from the registry by `make docs`. Do not edit.
"""The operations of `store` as methods."""

from typing import Unpack

from loom.edges.client.planes.store_fields import StoreExportFields, StoreImportFields
from loom.edges.client.running import AsyncRun, Run
from loom.system.transfer import ExportAnswer, ImportAnswer


class Store:
    """The operations of `store`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def export(self, **fields: Unpack[StoreExportFields]) -> ExportAnswer:
        """Export everything: memories, documents, conversations, issues and code, with ids and history."""
        return self._run("store.export", ExportAnswer, fields)

    def import_(self, **fields: Unpack[StoreImportFields]) -> ImportAnswer:
        """Import lines of store.export with their ids, versions and times; what is there already stays."""
        return self._run("store.import", ImportAnswer, fields)


class AsyncStore:
    """The operations of `store`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def export(self, **fields: Unpack[StoreExportFields]) -> ExportAnswer:
        """Export everything: memories, documents, conversations, issues and code, with ids and history."""
        return await self._run("store.export", ExportAnswer, fields)

    async def import_(self, **fields: Unpack[StoreImportFields]) -> ImportAnswer:
        """Import lines of store.export with their ids, versions and times; what is there already stays."""
        return await self._run("store.import", ImportAnswer, fields)
