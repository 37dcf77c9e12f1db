# Generated from the registry by `make docs`. Do not edit.
"""The operations of `context` as methods."""

from typing import Unpack

from loom.edges.client.planes.context_fields import ContextActivateFields, ContextPackFields
from loom.edges.client.running import AsyncRun, Run
from loom.federation.context import PackAnswer


class Context:
    """The operations of `context`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def activate(self, **fields: Unpack[ContextActivateFields]) -> PackAnswer:
        """Read at the start of a session how to use Loom, the goals and the profile, as one fragment for a prompt."""
        return self._run("context.activate", PackAnswer, fields)

    def pack(self, **fields: Unpack[ContextPackFields]) -> PackAnswer:
        """Read all that bears on a task, from every plane, as one fragment for a prompt within a token budget."""
        return self._run("context.pack", PackAnswer, fields)


class AsyncContext:
    """The operations of `context`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def activate(self, **fields: Unpack[ContextActivateFields]) -> PackAnswer:
        """Read at the start of a session how to use Loom, the goals and the profile, as one fragment for a prompt."""
        return await self._run("context.activate", PackAnswer, fields)

    async def pack(self, **fields: Unpack[ContextPackFields]) -> PackAnswer:
        """Read all that bears on a task, from every plane, as one fragment for a prompt within a token budget."""
        return await self._run("context.pack", PackAnswer, fields)
