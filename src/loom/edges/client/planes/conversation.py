# Generated from the registry by `make docs`. Do not edit.
"""The operations of `conversation` as methods."""

from typing import Unpack

from loom.edges.client.planes.conversation_fields import (
    ConversationAppendFields,
    ConversationDeleteFields,
    ConversationGetFields,
    ConversationListFields,
    ConversationSearchFields,
)
from loom.edges.client.running import AsyncRun, Run
from loom.planes.conversation.ops_append import AppendAnswer
from loom.planes.conversation.ops_delete import DeleteAnswer
from loom.planes.conversation.ops_read import GetAnswer, ListAnswer
from loom.planes.conversation.ops_search import SearchAnswer


class Conversation:
    """The operations of `conversation`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def append(self, **fields: Unpack[ConversationAppendFields]) -> AppendAnswer:
        """Keep messages of a conversation for later ones to search; a message with a known id adds nothing."""
        return self._run("conversation.append", AppendAnswer, fields)

    def delete(self, **fields: Unpack[ConversationDeleteFields]) -> DeleteAnswer:
        """Delete turns of a conversation, or all of it, for good."""
        return self._run("conversation.delete", DeleteAnswer, fields)

    def get(self, **fields: Unpack[ConversationGetFields]) -> GetAnswer:
        """Read the turns of a conversation, or those around a turn that a search found."""
        return self._run("conversation.get", GetAnswer, fields)

    def list(self, **fields: Unpack[ConversationListFields]) -> ListAnswer:
        """List conversations with their titles, times and numbers of turns, the latest first."""
        return self._run("conversation.list", ListAnswer, fields)

    def search(self, **fields: Unpack[ConversationSearchFields]) -> SearchAnswer:
        """Find what was said in earlier conversations, by meaning and by words, with the turns around it."""
        return self._run("conversation.search", SearchAnswer, fields)


class AsyncConversation:
    """The operations of `conversation`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def append(self, **fields: Unpack[ConversationAppendFields]) -> AppendAnswer:
        """Keep messages of a conversation for later ones to search; a message with a known id adds nothing."""
        return await self._run("conversation.append", AppendAnswer, fields)

    async def delete(self, **fields: Unpack[ConversationDeleteFields]) -> DeleteAnswer:
        """Delete turns of a conversation, or all of it, for good."""
        return await self._run("conversation.delete", DeleteAnswer, fields)

    async def get(self, **fields: Unpack[ConversationGetFields]) -> GetAnswer:
        """Read the turns of a conversation, or those around a turn that a search found."""
        return await self._run("conversation.get", GetAnswer, fields)

    async def list(self, **fields: Unpack[ConversationListFields]) -> ListAnswer:
        """List conversations with their titles, times and numbers of turns, the latest first."""
        return await self._run("conversation.list", ListAnswer, fields)

    async def search(self, **fields: Unpack[ConversationSearchFields]) -> SearchAnswer:
        """Find what was said in earlier conversations, by meaning and by words, with the turns around it."""
        return await self._run("conversation.search", SearchAnswer, fields)
