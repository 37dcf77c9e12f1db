"""What a store without statistics makes of the shared statements: none walks a whole org to find a few rows.

SQLite gathers statistics in upkeep, minutes after a store is filled; until then it takes a table's first key, the
org, to find hardly anything.
"""

import re

from loom.storage.interface import Database
from test_shared_statements import STATEMENTS, unknown

WHOLE_ORG = re.compile(r"(SCAN (?!json_each )[a-z]+_|SEARCH \w+ USING (COVERING )?INDEX \w+ \(org=\?\)$)")

MEANT = {
    "access.namespaces.LIST": "lists them",
    "access.tokens.ANY": "asks for one",
    "access.tokens.LIST": "lists them",
    "jobs.backlog.WAITING": "counts, up to a bound",
    "jobs.outbox.COUNT": "counts",
    "ops.audit.SWEEP": "looks for what is too old, by that index",
    "ops.idempotency.": "looks for what has expired, by that index",
    "cargo.COUNT": "counts, once an export",
    "code.embeds.TOTAL": "counts, once a pass of a reindex",
    "conversation.indexing.TOTAL": "counts, once a pass of a reindex",
    "knowledge.store.CHUNKS_TOTAL": "counts, once a pass of a reindex",
    "ledger.embedding.COUNT": "counts, once a pass of a reindex",
    "system.spaces.": "a few spaces",
    "tracker.embeds.TOTAL": "counts, once a pass of a reindex",
    "planes.code.store.EVERY": "lists repositories",
    "planes.knowledge.jobs.STALE": "a sweep over the org's documents",
    "planes.knowledge.ops_list.COUNTS": "counts",
    "planes.knowledge.store.DROP_NAMESPACE": "a namespace is deleted",
    "planes.knowledge.uploads.OPEN": "a few uploads are open",
    "planes.memory.extractions.OPEN": "a few calls wait",
    "planes.memory.listing.PAGES.3": "the past is not indexed",
    "planes.profile.activity.FORGET": "a sweep over sums of a month",
    "planes.profile.structured.cargo.FROM": "a few schemas",
    "planes.profile.structured.queries.PURGES": "a namespace is deleted",
    "system.carried_namespaces.COUNT": "counts, once an export",
}
"""Statements that read all of an org's rows in a table, and why they may."""


def test_no_statement_reads_all_of_an_org(sqlite_database: Database) -> None:
    wide: dict[str, list[str]] = {}
    with sqlite_database.transaction("dev", write=True) as tx:
        for where, sql in STATEMENTS.items():
            plan = [str(step["detail"]) for step in tx.rows(f"EXPLAIN QUERY PLAN {sql.strip()}", **unknown(sql))]
            steps = [step for step in plan if WHOLE_ORG.match(step)]
            if steps and not any(one in where for one in MEANT):
                wide[where] = steps
    assert wide == {}


def test_each_exception_is_still_a_statement() -> None:
    assert [one for one in MEANT if not any(one in where for where in STATEMENTS)] == []
