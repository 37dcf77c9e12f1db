# Generated from the registry by `make docs`. Do not edit.
"""The operations of `code` as methods."""

from typing import Unpack

from loom.edges.client.planes.code_fields import (
    CodeCallersFields,
    CodeDeleteFields,
    CodeIndexFields,
    CodeIndexStatusFields,
    CodeReadFields,
    CodeSearchFields,
    CodeSymbolFields,
)
from loom.edges.client.running import AsyncRun, Run
from loom.planes.code.ops_index import DeleteAnswer, StatusAnswer
from loom.planes.code.ops_read import CallersAnswer, ReadAnswer, SymbolAnswer
from loom.planes.code.ops_search import SearchAnswer


class Code:
    """The operations of `code`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def callers(self, **fields: Unpack[CodeCallersFields]) -> CallersAnswer:
        """See who calls a function or class, up to three steps away; read it before you change a signature."""
        return self._run("code.callers", CallersAnswer, fields)

    def delete(self, **fields: Unpack[CodeDeleteFields]) -> DeleteAnswer:
        """Forget the repository of a namespace: its files, definitions, documents and vectors."""
        return self._run("code.delete", DeleteAnswer, fields)

    def index(self, **fields: Unpack[CodeIndexFields]) -> StatusAnswer:
        """Index a repository, a folder or a git address; call it again after changes."""
        return self._run("code.index", StatusAnswer, fields)

    def index_status(self, **fields: Unpack[CodeIndexStatusFields]) -> StatusAnswer:
        """See how far a repository's index is, what it holds and what was left out."""
        return self._run("code.index_status", StatusAnswer, fields)

    def read(self, **fields: Unpack[CodeReadFields]) -> ReadAnswer:
        """Read lines of an indexed file, as they were when it was indexed."""
        return self._run("code.read", ReadAnswer, fields)

    def search(self, **fields: Unpack[CodeSearchFields]) -> SearchAnswer:
        """Find definitions in an indexed repository by name, by words or by what they do."""
        return self._run("code.search", SearchAnswer, fields)

    def symbol(self, **fields: Unpack[CodeSymbolFields]) -> SymbolAnswer:
        """Look a definition up by name: where it is, its signature, documentation, source and callers."""
        return self._run("code.symbol", SymbolAnswer, fields)


class AsyncCode:
    """The operations of `code`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def callers(self, **fields: Unpack[CodeCallersFields]) -> CallersAnswer:
        """See who calls a function or class, up to three steps away; read it before you change a signature."""
        return await self._run("code.callers", CallersAnswer, fields)

    async def delete(self, **fields: Unpack[CodeDeleteFields]) -> DeleteAnswer:
        """Forget the repository of a namespace: its files, definitions, documents and vectors."""
        return await self._run("code.delete", DeleteAnswer, fields)

    async def index(self, **fields: Unpack[CodeIndexFields]) -> StatusAnswer:
        """Index a repository, a folder or a git address; call it again after changes."""
        return await self._run("code.index", StatusAnswer, fields)

    async def index_status(self, **fields: Unpack[CodeIndexStatusFields]) -> StatusAnswer:
        """See how far a repository's index is, what it holds and what was left out."""
        return await self._run("code.index_status", StatusAnswer, fields)

    async def read(self, **fields: Unpack[CodeReadFields]) -> ReadAnswer:
        """Read lines of an indexed file, as they were when it was indexed."""
        return await self._run("code.read", ReadAnswer, fields)

    async def search(self, **fields: Unpack[CodeSearchFields]) -> SearchAnswer:
        """Find definitions in an indexed repository by name, by words or by what they do."""
        return await self._run("code.search", SearchAnswer, fields)

    async def symbol(self, **fields: Unpack[CodeSymbolFields]) -> SymbolAnswer:
        """Look a definition up by name: where it is, its signature, documentation, source and callers."""
        return await self._run("code.symbol", SymbolAnswer, fields)
