"""What `rules` says of one row, as SQL for rows too many to read. A test holds the two alike.

The fragments stand in a WHERE over `ledger_item i`, joined where they say so
with `ledger_version v`. Their parameters are `:now`, and those of `reach_params`
and `DELETED_VERSION_PARAMS`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from loom.access.caller import ReadScope
from loom.ledger.rules import DELETED_VERSION_TRACE, DERIVED, Reader
from loom.storage.interface import Value

IS_LIVE = "(i.status = 'live' AND (i.expires_at IS NULL OR i.expires_at > :now))"
"""`Item.is_live`."""

SEARCHED = IS_LIVE + " AND i.sensitivity = 'normal'"
"""What is neither rendered nor searched is left out: a row of high sensitivity."""

_VISIBLE = """(:any_user = 1 OR i.user_id = '-'
        OR (i.user_id = :reader AND (:any_session = 1 OR i.session_id = :session_id)))"""

REACHED = f"""(:any_user = 1 OR i.user_id = '-'
        OR (i.user_id = :reader
            AND (:any_session = 1 OR (i.session_id = :session_id AND i.memory_type <> '{DERIVED}'))))"""
"""`rules.sees`, by the session of the row's latest version."""


def reached(rows: str) -> str:
    """`rules.visible` for the rows of another table, by the name they have in the statement."""
    return _VISIBLE.replace("i.", f"{rows}.")


VERSION_REACHED = REACHED.replace("i.session_id", "v.session_id")
"""The same by the session of the version `v`."""

NOT_DELETED_VERSION = "substr(source_trace, 1, :deleted_trace_length) <> :deleted_trace"
"""Whether a row of `ledger_version` is none that `memory.delete_version` took away."""

DELETED_VERSION_PARAMS: Mapping[str, Value] = MappingProxyType(
    {"deleted_trace": DELETED_VERSION_TRACE, "deleted_trace_length": len(DELETED_VERSION_TRACE)}
)
"""The parameters of `NOT_DELETED_VERSION`."""


def reach_params(reader: Reader) -> dict[str, Value]:
    """The parameters of `REACHED` and `VERSION_REACHED`."""
    return {
        "any_user": int(reader.scope is ReadScope.NAMESPACE),
        "any_session": int(reader.scope is not ReadScope.OWN_SESSION),
        "reader": reader.user_id,
        "session_id": reader.session_id,
    }
