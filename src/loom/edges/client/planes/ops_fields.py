# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `ops`."""

from loom.edges.client.core import Identity


class OpsCapabilitiesFields(Identity):
    """What `ops.capabilities` takes."""


class OpsHealthFields(Identity):
    """What `ops.health` takes."""
