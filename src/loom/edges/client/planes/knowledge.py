# Generated from the registry by `make docs`. Do not edit.
"""The operations of `knowledge` as methods."""

from typing import Unpack

from loom.edges.client.planes.knowledge_fields import (
    KnowledgeAddFields,
    KnowledgeDeleteFields,
    KnowledgeGetFields,
    KnowledgeListFields,
    KnowledgeSearchFields,
    KnowledgeUploadFields,
)
from loom.edges.client.running import AsyncRun, Run
from loom.planes.knowledge.ops_add import AddAnswer
from loom.planes.knowledge.ops_delete import DeleteAnswer
from loom.planes.knowledge.ops_list import ListAnswer
from loom.planes.knowledge.ops_read import GetAnswer
from loom.planes.knowledge.ops_search import SearchAnswer
from loom.planes.knowledge.ops_upload import UploadAnswer


class Knowledge:
    """The operations of `knowledge`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, **fields: Unpack[KnowledgeAddFields]) -> AddAnswer:
        """Add a document (text, Markdown, HTML, PDF, Word) to be found by passage; the same uri is a new revision."""
        return self._run("knowledge.add", AddAnswer, fields)

    def delete(self, **fields: Unpack[KnowledgeDeleteFields]) -> DeleteAnswer:
        """Delete a document with every revision of it, for good; nothing finds it any more."""
        return self._run("knowledge.delete", DeleteAnswer, fields)

    def get(self, **fields: Unpack[KnowledgeGetFields]) -> GetAnswer:
        """Read a document's text by lines or page, the latest revision or an older one."""
        return self._run("knowledge.get", GetAnswer, fields)

    def list(self, **fields: Unpack[KnowledgeListFields]) -> ListAnswer:
        """List documents with their revision, size and how far their indexing is."""
        return self._run("knowledge.list", ListAnswer, fields)

    def search(self, **fields: Unpack[KnowledgeSearchFields]) -> SearchAnswer:
        """Find passages of documents by meaning and by words, each with its headings and its lines or page."""
        return self._run("knowledge.search", SearchAnswer, fields)

    def upload(self, **fields: Unpack[KnowledgeUploadFields]) -> UploadAnswer:
        """Send a file of over 2 MiB in parts, before knowledge.add takes it; kept for an hour."""
        return self._run("knowledge.upload", UploadAnswer, fields)


class AsyncKnowledge:
    """The operations of `knowledge`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def add(self, **fields: Unpack[KnowledgeAddFields]) -> AddAnswer:
        """Add a document (text, Markdown, HTML, PDF, Word) to be found by passage; the same uri is a new revision."""
        return await self._run("knowledge.add", AddAnswer, fields)

    async def delete(self, **fields: Unpack[KnowledgeDeleteFields]) -> DeleteAnswer:
        """Delete a document with every revision of it, for good; nothing finds it any more."""
        return await self._run("knowledge.delete", DeleteAnswer, fields)

    async def get(self, **fields: Unpack[KnowledgeGetFields]) -> GetAnswer:
        """Read a document's text by lines or page, the latest revision or an older one."""
        return await self._run("knowledge.get", GetAnswer, fields)

    async def list(self, **fields: Unpack[KnowledgeListFields]) -> ListAnswer:
        """List documents with their revision, size and how far their indexing is."""
        return await self._run("knowledge.list", ListAnswer, fields)

    async def search(self, **fields: Unpack[KnowledgeSearchFields]) -> SearchAnswer:
        """Find passages of documents by meaning and by words, each with its headings and its lines or page."""
        return await self._run("knowledge.search", SearchAnswer, fields)

    async def upload(self, **fields: Unpack[KnowledgeUploadFields]) -> UploadAnswer:
        """Send a file of over 2 MiB in parts, before knowledge.add takes it; kept for an hour."""
        return await self._run("knowledge.upload", UploadAnswer, fields)
