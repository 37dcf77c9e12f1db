# Generated from the registry by `make docs`. Do not edit.
"""The operations of `search` as methods."""

from typing import Unpack

from loom.edges.client.planes.search_fields import SearchQueryFields
from loom.edges.client.running import AsyncRun, Run
from loom.federation.query import QueryAnswer


class Search:
    """The operations of `search`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def query(self, **fields: Unpack[SearchQueryFields]) -> QueryAnswer:
        """Search memories, profile, documents and conversations with one question; the place to look first."""
        return self._run("search.query", QueryAnswer, fields)


class AsyncSearch:
    """The operations of `search`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def query(self, **fields: Unpack[SearchQueryFields]) -> QueryAnswer:
        """Search memories, profile, documents and conversations with one question; the place to look first."""
        return await self._run("search.query", QueryAnswer, fields)
