"""Memories: one claim each under a readable key, any JSON, with every version kept.

`ops_write`, `ops_many`, `ops_guard`, `ops_remove`, `ops_read`, `ops_list`,
and `ops_search` are the operations; `cargo` moves memories to another store; `rules` says what may be
written, `select` what a search may show; the rows are the ledger's.
"""

from collections.abc import Mapping

from loom.jobs.handlers import LateHandler
from loom.planes.memory.cargo import CARGO
from loom.planes.memory.ops_guard import LOCK, PIN, TOUCH
from loom.planes.memory.ops_list import LIST
from loom.planes.memory.ops_many import SET_MANY
from loom.planes.memory.ops_read import GET, HISTORY
from loom.planes.memory.ops_remove import DELETE, DELETE_VERSION, REDACT, RESTORE
from loom.planes.memory.ops_search import LEG, NEXT_PAGE, SEARCH
from loom.planes.memory.ops_write import SET, UPDATE
from loom.planes.memory.sweeps import SWEEPS

__all__ = ["CARGO", "LATE", "LEG", "OPS", "SWEEPS"]

LATE: Mapping[str, LateHandler] = {}

OPS = (
    SET,
    SET_MANY,
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
