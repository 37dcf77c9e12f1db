"""Memories: one claim each under a readable key, any JSON, with every version kept.

`ops_write`, `ops_many`, `ops_guard`, `ops_remove`, `ops_read`, `ops_list`,
`ops_search` and `ops_messages` are the operations; `cargo` moves memories to another store; `rules` says what may be
written, `select` what a search may show; the rows are the ledger's. `claims`, `extracting`,
`keeping` and `extractions` turn messages into memories with a language model.
"""

from collections.abc import Mapping

from loom.jobs.handlers import LateHandler, Sweep
from loom.planes.memory.cargo import CARGO
from loom.planes.memory.extractions import JOBS, SLOW, purge_namespace
from loom.planes.memory.extractions import SWEEPS as OLD_MESSAGES
from loom.planes.memory.ops_guard import LOCK, PIN, TOUCH
from loom.planes.memory.ops_list import LIST
from loom.planes.memory.ops_many import SET_MANY
from loom.planes.memory.ops_messages import SET_FROM_MESSAGES
from loom.planes.memory.ops_read import GET, HISTORY
from loom.planes.memory.ops_remove import DELETE, DELETE_VERSION, REDACT, RESTORE
from loom.planes.memory.ops_search import LEG, NEXT_PAGE, SEARCH
from loom.planes.memory.ops_write import SET, UPDATE
from loom.planes.memory.sweeps import SWEEPS as ROW_SWEEPS

__all__ = ["CARGO", "JOBS", "LATE", "LEG", "OPS", "SLOW", "SWEEPS", "purge_namespace"]

SWEEPS: tuple[Sweep, ...] = (*ROW_SWEEPS, *OLD_MESSAGES)

LATE: Mapping[str, LateHandler] = {}

OPS = (
    SET,
    SET_MANY,
    SET_FROM_MESSAGES,
    UPDATE,
    GET,
    HISTORY,
    LIST,
    SEARCH,
    NEXT_PAGE,
    TOUCH,
    PIN,
    LOCK,
    DELETE,
    RESTORE,
    DELETE_VERSION,
    REDACT,
)
