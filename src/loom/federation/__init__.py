"""Questions put to several planes at once.

`query` is search.query, `legs` asks the planes side by side, each within its
own time.
"""

from collections.abc import Sequence

from loom.federation.query import search_query
from loom.ops.spec import AnyOp
from loom.planes.leg import Leg


def ops(legs: Sequence[Leg]) -> tuple[AnyOp, ...]:
    """The operations that ask these planes."""
    return (search_query(legs),)


__all__ = ["ops"]
