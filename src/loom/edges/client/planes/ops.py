# Generated from the registry by `make docs`. Do not edit.
"""The operations of `ops` as methods."""

from typing import Unpack

from loom.edges.client.planes.ops_fields import OpsCapabilitiesFields, OpsHealthFields, OpsOverviewFields
from loom.edges.client.running import AsyncRun, Run
from loom.system.about import CapabilitiesAnswer, HealthAnswer
from loom.system.overview import OverviewAnswer


class Ops:
    """The operations of `ops`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def capabilities(self, **fields: Unpack[OpsCapabilitiesFields]) -> CapabilitiesAnswer:
        """List every operation with its role, kind, toolsets and schemas."""
        return self._run("ops.capabilities", CapabilitiesAnswer, fields)

    def health(self, **fields: Unpack[OpsHealthFields]) -> HealthAnswer:
        """Check whether the server, its store and its embedder work, and how much work is waiting."""
        return self._run("ops.health", HealthAnswer, fields)

    def overview(self, **fields: Unpack[OpsOverviewFields]) -> OverviewAnswer:
        """See how much each namespace you reach holds, by plane, and how much was written on each of the last days."""
        return self._run("ops.overview", OverviewAnswer, fields)


class AsyncOps:
    """The operations of `ops`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def capabilities(self, **fields: Unpack[OpsCapabilitiesFields]) -> CapabilitiesAnswer:
        """List every operation with its role, kind, toolsets and schemas."""
        return await self._run("ops.capabilities", CapabilitiesAnswer, fields)

    async def health(self, **fields: Unpack[OpsHealthFields]) -> HealthAnswer:
        """Check whether the server, its store and its embedder work, and how much work is waiting."""
        return await self._run("ops.health", HealthAnswer, fields)

    async def overview(self, **fields: Unpack[OpsOverviewFields]) -> OverviewAnswer:
        """See how much each namespace you reach holds, by plane, and how much was written on each of the last days."""
        return await self._run("ops.overview", OverviewAnswer, fields)
