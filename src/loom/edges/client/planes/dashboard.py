# Generated from the registry by `make docs`. Do not edit.
"""The operations of `dashboard` as methods."""

from typing import Unpack

from loom.edges.client.planes.dashboard_fields import DashboardLinkFields
from loom.edges.client.running import AsyncRun, Run
from loom.system.sign_in import LinkAnswer


class Dashboard:
    """The operations of `dashboard`, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def link(self, **fields: Unpack[DashboardLinkFields]) -> LinkAnswer:
        """Make a link that opens the dashboard once, within five minutes, signed in as you."""
        return self._run("dashboard.link", LinkAnswer, fields)


class AsyncDashboard:
    """The operations of `dashboard`, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def link(self, **fields: Unpack[DashboardLinkFields]) -> LinkAnswer:
        """Make a link that opens the dashboard once, within five minutes, signed in as you."""
        return await self._run("dashboard.link", LinkAnswer, fields)
