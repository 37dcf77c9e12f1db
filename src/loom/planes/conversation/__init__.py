"""Conversations: messages in the order they were said, found by meaning and words with what stands beside them.

`ops_append`, `ops_read`, `ops_search` and `ops_delete` are the operations; `rules` says
what a message is and says, `store` keeps it, `indexing` has it found, `search` ranks.
"""

from collections.abc import Mapping

from loom.jobs.handlers import LateHandler, Sweep
from loom.planes.conversation.cargo import CARGO
from loom.planes.conversation.indexing import JOBS, VECTORED, purge_namespace
from loom.planes.conversation.ops_append import APPEND
from loom.planes.conversation.ops_delete import DELETE
from loom.planes.conversation.ops_read import GET, LIST
from loom.planes.conversation.ops_search import LEG, SEARCH

__all__ = ["CARGO", "JOBS", "LATE", "LEG", "OPS", "SWEEPS", "VECTORED", "purge_namespace"]

OPS = (APPEND, GET, LIST, SEARCH, DELETE)
LATE: Mapping[str, LateHandler] = {}
SWEEPS: tuple[Sweep, ...] = ()
