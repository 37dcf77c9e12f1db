# Generated from the registry by `make docs`. Do not edit.
"""The operations of `tracker` as methods."""

from typing import Unpack

from loom.edges.client.planes.tracker_fields import (
    TrackerAddFields,
    TrackerDeleteFields,
    TrackerDuplicateCheckFields,
    TrackerGetFields,
    TrackerImportFields,
    TrackerListFields,
    TrackerSearchFields,
)
from loom.edges.client.running import AsyncRun, Run
from loom.planes.tracker.ops_list import ListAnswer
from loom.planes.tracker.ops_read import CheckAnswer, GetAnswer, SearchAnswer
from loom.planes.tracker.ops_write import AddAnswer, DeleteAnswer, ImportAnswer


class Tracker:
    """The operations of `tracker`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, **fields: Unpack[TrackerAddFields]) -> AddAnswer:
        """Keep an issue of a bug tracker under its number, or bring it up to date, so that its repeats are known."""
        return self._run("tracker.add", AddAnswer, fields)

    def delete(self, **fields: Unpack[TrackerDeleteFields]) -> DeleteAnswer:
        """Delete an issue for good; no search finds it, and no later report is compared with it."""
        return self._run("tracker.delete", DeleteAnswer, fields)

    def duplicate_check(self, **fields: Unpack[TrackerDuplicateCheckFields]) -> CheckAnswer:
        """Before a defect is reported or debugged: say whether it is known, with the likeliest issues and why."""
        return self._run("tracker.duplicate_check", CheckAnswer, fields)

    def get(self, **fields: Unpack[TrackerGetFields]) -> GetAnswer:
        """Read an issue by its number."""
        return self._run("tracker.get", GetAnswer, fields)

    def import_(self, **fields: Unpack[TrackerImportFields]) -> ImportAnswer:
        """Import up to 500 issues as GitHub gives them; what is here stays, what changed is brought up to date."""
        return self._run("tracker.import", ImportAnswer, fields)

    def list(self, **fields: Unpack[TrackerListFields]) -> ListAnswer:
        """List issues by their number, the latest first."""
        return self._run("tracker.list", ListAnswer, fields)

    def search(self, **fields: Unpack[TrackerSearchFields]) -> SearchAnswer:
        """Find issues by words, meaning, an error message or a stack trace."""
        return self._run("tracker.search", SearchAnswer, fields)


class AsyncTracker:
    """The operations of `tracker`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def add(self, **fields: Unpack[TrackerAddFields]) -> AddAnswer:
        """Keep an issue of a bug tracker under its number, or bring it up to date, so that its repeats are known."""
        return await self._run("tracker.add", AddAnswer, fields)

    async def delete(self, **fields: Unpack[TrackerDeleteFields]) -> DeleteAnswer:
        """Delete an issue for good; no search finds it, and no later report is compared with it."""
        return await self._run("tracker.delete", DeleteAnswer, fields)

    async def duplicate_check(self, **fields: Unpack[TrackerDuplicateCheckFields]) -> CheckAnswer:
        """Before a defect is reported or debugged: say whether it is known, with the likeliest issues and why."""
        return await self._run("tracker.duplicate_check", CheckAnswer, fields)

    async def get(self, **fields: Unpack[TrackerGetFields]) -> GetAnswer:
        """Read an issue by its number."""
        return await self._run("tracker.get", GetAnswer, fields)

    async def import_(self, **fields: Unpack[TrackerImportFields]) -> ImportAnswer:
        """Import up to 500 issues as GitHub gives them; what is here stays, what changed is brought up to date."""
        return await self._run("tracker.import", ImportAnswer, fields)

    async def list(self, **fields: Unpack[TrackerListFields]) -> ListAnswer:
        """List issues by their number, the latest first."""
        return await self._run("tracker.list", ListAnswer, fields)

    async def search(self, **fields: Unpack[TrackerSearchFields]) -> SearchAnswer:
        """Find issues by words, meaning, an error message or a stack trace."""
        return await self._run("tracker.search", SearchAnswer, fields)
