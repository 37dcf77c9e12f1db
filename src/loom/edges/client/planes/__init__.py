# Generated from the registry by `make docs`. Do not edit.
"""Every plane of the client, and what may be sent twice."""

from loom.edges.client.core import Repeats
from loom.edges.client.running import AsyncRun, Run

REPEATS = Repeats(reads=frozenset(), secrets=frozenset())


class Planes:
    """Every plane, waiting for each answer."""

    def __init__(self, run: Run) -> None:
        del run


class AsyncPlanes:
    """Every plane, awaited."""

    def __init__(self, run: AsyncRun) -> None:
        del run
