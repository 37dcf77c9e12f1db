"""Which operations a replica may serve."""

from loom import compose
from loom.ops.spec import Kind

MAY_LAG = {
    "search.query",
    "memory.search",
    "memory.next_page",
    "memory.list",
    "profile.render",
    "knowledge.search",
    "conversation.search",
    "tracker.search",
    "code.search",
}
"""tracker.duplicate_check is none of them: an issue is added and the next report compared with it."""


def test_only_reads_where_nobody_reads_back_a_write_may_lag() -> None:
    found = {op.name: op.kind for op in compose.registry() if op.may_lag}
    assert set(found) == MAY_LAG
    assert set(found.values()) == {Kind.READ}
