# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `dashboard`."""

from loom.edges.client.core import Identity


class DashboardLinkFields(Identity):
    """What `dashboard.link` takes."""
