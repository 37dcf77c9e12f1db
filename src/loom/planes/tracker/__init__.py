"""The tracker: issues of bug trackers, and whether a new report is of a defect that is known.

`traces` reads stack frames, `traits` everything that a report names, `github` what GitHub exports,
`shape` tells a question about a defect; `rules` and `likeness` say what an issue is and when two
are of one defect; `store` holds the SQL, `search` finds candidates, `checking` gives the verdict;
`writing` and `embeds` change rows and indexes together; `ops_*` are the operations, `leg` is the
part of search.query.
"""

from collections.abc import Mapping

from loom.jobs.handlers import LateHandler, Sweep
from loom.planes.tracker import embeds, leg, ops_list, ops_read, ops_write, store
from loom.planes.tracker.cargo import CARGO
from loom.planes.tracker.search import shelf
from loom.storage.interface import Transaction

OPS = (*ops_write.OPS, *ops_read.OPS, *ops_list.OPS)
JOBS = embeds.JOBS
VECTORED = embeds.VECTORED
LATE: Mapping[str, LateHandler] = {}
SWEEPS: tuple[Sweep, ...] = ()
LEG = leg.LEG


def purge_namespace(tx: Transaction, namespace: str) -> int:
    """Remove every issue of a namespace, for good; how many there were."""
    purged = store.purge(tx, namespace)
    tx.text.drop(shelf(namespace))
    tx.vectors.drop(shelf(namespace))
    return purged


__all__ = ["CARGO", "JOBS", "LATE", "LEG", "OPS", "SWEEPS", "VECTORED", "purge_namespace"]
