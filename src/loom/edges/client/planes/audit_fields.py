# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `audit`."""

from datetime import datetime
from typing import NotRequired

from loom.edges.client.core import Identity


class AuditListFields(Identity):
    """What `audit.list` takes."""

    about_namespace: NotRequired[str]
    """Only what was done to this namespace; empty for all."""
    principal: NotRequired[str]
    """Only what this token did, by its token_id; empty for all."""
    op: NotRequired[str]
    """Only this operation, for instance token.mint; empty for all."""
    since: NotRequired[datetime | None]
    """Only from this moment on; null for no bound."""
    until: NotRequired[datetime | None]
    """Only before this moment; null for no bound."""
    limit: NotRequired[int]
    """At most this many records."""
    cursor: NotRequired[str]
    """next_cursor of the answer before; empty to begin."""
