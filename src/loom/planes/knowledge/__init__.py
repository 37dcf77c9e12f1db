"""Documents: texts, Markdown, HTML, PDF and Word files, found by passage and cited by line or page.

`ops_add`, `ops_upload`, `ops_read`, `ops_list`, `ops_delete` and `ops_search` are the operations; `text`, `blocks` and
`chunks` cut a text into passages, `indexing` keeps the indexes in step with them, `jobs` does what takes long, `rules`
says what a document is, `store` has its rows. Files are read by `loom.extraction`.
"""

from collections.abc import Mapping

from loom.jobs.handlers import LateHandler
from loom.planes.knowledge.cargo import CARGO
from loom.planes.knowledge.handed import forget_text, keep_text
from loom.planes.knowledge.indexing import purge_namespace
from loom.planes.knowledge.jobs import JOBS, SWEEPS
from loom.planes.knowledge.ops_add import ADD
from loom.planes.knowledge.ops_delete import DELETE
from loom.planes.knowledge.ops_list import LIST_OP
from loom.planes.knowledge.ops_read import GET
from loom.planes.knowledge.ops_search import LEG, SEARCH
from loom.planes.knowledge.ops_upload import UPLOAD
from loom.planes.knowledge.vectored import VECTORED

__all__ = ["CARGO", "JOBS", "LATE", "LEG", "OPS", "SWEEPS", "VECTORED", "forget_text", "keep_text", "purge_namespace"]

LATE: Mapping[str, LateHandler] = {}

OPS = (ADD, UPLOAD, GET, LIST_OP, SEARCH, DELETE)
