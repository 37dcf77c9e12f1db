# Generated from the registry by `make docs`. Do not edit.
"""The operations of `audit` as methods."""

from typing import Unpack

from loom.edges.client.planes.audit_fields import AuditListFields
from loom.edges.client.running import AsyncRun, Run
from loom.system.audit import ListAnswer


class Audit:
    """The operations of `audit`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def list(self, **fields: Unpack[AuditListFields]) -> ListAnswer:
        """See what changed access and what took information away: who did it, when and to what; the newest first."""
        return self._run("audit.list", ListAnswer, fields)


class AsyncAudit:
    """The operations of `audit`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def list(self, **fields: Unpack[AuditListFields]) -> ListAnswer:
        """See what changed access and what took information away: who did it, when and to what; the newest first."""
        return await self._run("audit.list", ListAnswer, fields)
