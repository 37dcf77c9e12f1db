"""Questions put to several planes at once.

`query` is search.query, `legs` asks the planes side by side, each within its own time, and
`scope` finds the repository that a namespace stands for. `context` is context.pack and
context.activate: the same answers, as `entries` of a prompt that `pack` fits into a budget.
"""

from collections.abc import Sequence

from loom.federation.context import ACTIVATE, context_pack
from loom.federation.query import search_query
from loom.ops.spec import AnyOp
from loom.planes.leg import Leg


def ops(legs: Sequence[Leg]) -> tuple[AnyOp, ...]:
    """The operations that ask these planes."""
    return (search_query(legs), context_pack(legs), ACTIVATE)


__all__ = ["ops"]
