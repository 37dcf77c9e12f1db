# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `ops`."""

from typing import Literal, NotRequired

from loom.edges.client.core import Identity


class OpsCapabilitiesFields(Identity):
    """What `ops.capabilities` takes."""


class OpsHealthFields(Identity):
    """What `ops.health` takes."""


class OpsOverviewFields(Identity):
    """What `ops.overview` takes."""

    lookback_days: NotRequired[int]
    """How many days of writes to show, today among them."""
    planes: NotRequired[list[Literal["memories", "documents", "conversations", "issues", "symbols"]] | None]
    """Count these alone, memories with sections; null for all. Others are 0."""
    read_scope: NotRequired[Literal["namespace", "own_user", "own_session"]]
    """Whose rows to count: every user's, or this user_id's or session's."""
