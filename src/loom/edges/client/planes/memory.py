# Generated from the registry by `make docs`. Do not edit.
"""The operations of `memory` as methods."""

from typing import Unpack

from loom.edges.client.planes.memory_fields import (
    MemoryDeleteFields,
    MemoryDeleteVersionFields,
    MemoryGetFields,
    MemoryHistoryFields,
    MemoryListFields,
    MemoryLockFields,
    MemoryNextPageFields,
    MemoryPinFields,
    MemoryRedactFields,
    MemoryRestoreFields,
    MemorySearchFields,
    MemorySetFields,
    MemorySetFromMessagesFields,
    MemorySetManyFields,
    MemoryTouchFields,
    MemoryUpdateFields,
)
from loom.edges.client.running import AsyncRun, Run
from loom.planes.memory.answers import SearchAnswer
from loom.planes.memory.messages import SetFromMessagesAnswer
from loom.planes.memory.ops_guard import GuardAnswer
from loom.planes.memory.ops_list import ListAnswer
from loom.planes.memory.ops_many import SetManyAnswer
from loom.planes.memory.ops_read import GetAnswer, HistoryAnswer
from loom.planes.memory.ops_remove import DeleteAnswer, DeleteVersionAnswer, RedactAnswer, RestoreAnswer
from loom.planes.memory.ops_write import SetAnswer


class Memory:
    """The operations of `memory`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def delete(self, **fields: Unpack[MemoryDeleteFields]) -> DeleteAnswer:
        """Delete a memory; it is found no more at once, and memory.restore brings it back until recoverable_until."""
        return self._run("memory.delete", DeleteAnswer, fields)

    def delete_version(self, **fields: Unpack[MemoryDeleteVersionFields]) -> DeleteVersionAnswer:
        """Erase one version of a memory for good; where it was the live one, the next older lives again."""
        return self._run("memory.delete_version", DeleteVersionAnswer, fields)

    def get(self, **fields: Unpack[MemoryGetFields]) -> GetAnswer:
        """Read one memory by its key, now, as of a moment, or one version; found=false when there is none."""
        return self._run("memory.get", GetAnswer, fields)

    def history(self, **fields: Unpack[MemoryHistoryFields]) -> HistoryAnswer:
        """Read every version of one memory or profile section, the newest first."""
        return self._run("memory.history", HistoryAnswer, fields)

    def list(self, **fields: Unpack[MemoryListFields]) -> ListAnswer:
        """List memories by prefix, type, tags or text they hold, now or as of a moment; search finds by meaning."""
        return self._run("memory.list", ListAnswer, fields)

    def lock(self, **fields: Unpack[MemoryLockFields]) -> GuardAnswer:
        """Lock a memory against deletion or against any change; only an admin can loosen a lock."""
        return self._run("memory.lock", GuardAnswer, fields)

    def next_page(self, **fields: Unpack[MemoryNextPageFields]) -> SearchAnswer:
        """Read the next page of a memory.search or search.query, by the handle its answer carried."""
        return self._run("memory.next_page", SearchAnswer, fields)

    def pin(self, **fields: Unpack[MemoryPinFields]) -> GuardAnswer:
        """Pin a memory so that it cannot be deleted and never expires, or unpin it."""
        return self._run("memory.pin", GuardAnswer, fields)

    def redact(self, **fields: Unpack[MemoryRedactFields]) -> RedactAnswer:
        """Erase a memory's text from every version and index for good; that there was one stays known."""
        return self._run("memory.redact", RedactAnswer, fields)

    def restore(self, **fields: Unpack[MemoryRestoreFields]) -> RestoreAnswer:
        """Bring back a memory that was deleted or has expired, with the value and attributes it had."""
        return self._run("memory.restore", RestoreAnswer, fields)

    def search(self, **fields: Unpack[MemorySearchFields]) -> SearchAnswer:
        """Find memories by meaning and by words, with how likely each answers and a block ready for a prompt."""
        return self._run("memory.search", SearchAnswer, fields)

    def set(self, **fields: Unpack[MemorySetFields]) -> SetAnswer:
        """Remember one claim under a readable key: creates it, or writes a new version of it."""
        return self._run("memory.set", SetAnswer, fields)

    def set_from_messages(self, **fields: Unpack[MemorySetFromMessagesFields]) -> SetFromMessagesAnswer:
        """Have the language model read messages, and remember what they say as claims that name them.

        The messages are sent to the endpoint that the server's settings name.
        """
        return self._run("memory.set_from_messages", SetFromMessagesAnswer, fields)

    def set_many(self, **fields: Unpack[MemorySetManyFields]) -> SetManyAnswer:
        """Remember up to 1,000 claims in one call; each has its own answer, and one that is refused stops no other."""
        return self._run("memory.set_many", SetManyAnswer, fields)

    def touch(self, **fields: Unpack[MemoryTouchFields]) -> GuardAnswer:
        """Give a memory a time to live from now on, or take it away; its value stays as it is."""
        return self._run("memory.touch", GuardAnswer, fields)

    def update(self, **fields: Unpack[MemoryUpdateFields]) -> SetAnswer:
        """Change a memory's value or attributes and keep the rest as it is."""
        return self._run("memory.update", SetAnswer, fields)


class AsyncMemory:
    """The operations of `memory`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def delete(self, **fields: Unpack[MemoryDeleteFields]) -> DeleteAnswer:
        """Delete a memory; it is found no more at once, and memory.restore brings it back until recoverable_until."""
        return await self._run("memory.delete", DeleteAnswer, fields)

    async def delete_version(self, **fields: Unpack[MemoryDeleteVersionFields]) -> DeleteVersionAnswer:
        """Erase one version of a memory for good; where it was the live one, the next older lives again."""
        return await self._run("memory.delete_version", DeleteVersionAnswer, fields)

    async def get(self, **fields: Unpack[MemoryGetFields]) -> GetAnswer:
        """Read one memory by its key, now, as of a moment, or one version; found=false when there is none."""
        return await self._run("memory.get", GetAnswer, fields)

    async def history(self, **fields: Unpack[MemoryHistoryFields]) -> HistoryAnswer:
        """Read every version of one memory or profile section, the newest first."""
        return await self._run("memory.history", HistoryAnswer, fields)

    async def list(self, **fields: Unpack[MemoryListFields]) -> ListAnswer:
        """List memories by prefix, type, tags or text they hold, now or as of a moment; search finds by meaning."""
        return await self._run("memory.list", ListAnswer, fields)

    async def lock(self, **fields: Unpack[MemoryLockFields]) -> GuardAnswer:
        """Lock a memory against deletion or against any change; only an admin can loosen a lock."""
        return await self._run("memory.lock", GuardAnswer, fields)

    async def next_page(self, **fields: Unpack[MemoryNextPageFields]) -> SearchAnswer:
        """Read the next page of a memory.search or search.query, by the handle its answer carried."""
        return await self._run("memory.next_page", SearchAnswer, fields)

    async def pin(self, **fields: Unpack[MemoryPinFields]) -> GuardAnswer:
        """Pin a memory so that it cannot be deleted and never expires, or unpin it."""
        return await self._run("memory.pin", GuardAnswer, fields)

    async def redact(self, **fields: Unpack[MemoryRedactFields]) -> RedactAnswer:
        """Erase a memory's text from every version and index for good; that there was one stays known."""
        return await self._run("memory.redact", RedactAnswer, fields)

    async def restore(self, **fields: Unpack[MemoryRestoreFields]) -> RestoreAnswer:
        """Bring back a memory that was deleted or has expired, with the value and attributes it had."""
        return await self._run("memory.restore", RestoreAnswer, fields)

    async def search(self, **fields: Unpack[MemorySearchFields]) -> SearchAnswer:
        """Find memories by meaning and by words, with how likely each answers and a block ready for a prompt."""
        return await self._run("memory.search", SearchAnswer, fields)

    async def set(self, **fields: Unpack[MemorySetFields]) -> SetAnswer:
        """Remember one claim under a readable key: creates it, or writes a new version of it."""
        return await self._run("memory.set", SetAnswer, fields)

    async def set_from_messages(self, **fields: Unpack[MemorySetFromMessagesFields]) -> SetFromMessagesAnswer:
        """Have the language model read messages, and remember what they say as claims that name them.

        The messages are sent to the endpoint that the server's settings name.
        """
        return await self._run("memory.set_from_messages", SetFromMessagesAnswer, fields)

    async def set_many(self, **fields: Unpack[MemorySetManyFields]) -> SetManyAnswer:
        """Remember up to 1,000 claims in one call; each has its own answer, and one that is refused stops no other."""
        return await self._run("memory.set_many", SetManyAnswer, fields)

    async def touch(self, **fields: Unpack[MemoryTouchFields]) -> GuardAnswer:
        """Give a memory a time to live from now on, or take it away; its value stays as it is."""
        return await self._run("memory.touch", GuardAnswer, fields)

    async def update(self, **fields: Unpack[MemoryUpdateFields]) -> SetAnswer:
        """Change a memory's value or attributes and keep the rest as it is."""
        return await self._run("memory.update", SetAnswer, fields)
