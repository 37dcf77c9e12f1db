"""The statements of structured profiles; `store` runs them."""

from typing import Final

from loom.ledger import store
from loom.ledger.telling import IS_FACT, STILL

PUT_SCHEMA = """
INSERT INTO profile_schema (org, namespace, version, definition, schema_sha256, updated_by, updated_at)
VALUES (:org, :namespace, :version, :definition, :schema_sha256, :updated_by, :updated_at)
"""
SCHEMAS = """
SELECT version, definition, schema_sha256, updated_by, updated_at FROM profile_schema
WHERE org = :org AND namespace = :namespace AND version < :before ORDER BY version DESC LIMIT :most
"""
SCHEMA = """
SELECT version, definition, schema_sha256, updated_by, updated_at FROM profile_schema
WHERE org = :org AND namespace = :namespace AND version = :version
"""
WATCH = """
INSERT INTO derived_watch (org, namespace, job_kind) VALUES (:org, :namespace, :job_kind)
ON CONFLICT (org, namespace) DO UPDATE SET job_kind = excluded.job_kind
"""
UNWATCH = "DELETE FROM derived_watch WHERE org = :org AND namespace = :namespace"

USER = """
SELECT changes, waiting_since, read_at, building_until, wanted, failures, failed_at FROM derived_user
WHERE org = :org AND namespace = :namespace AND user_id = :user_id
"""

HELD = (
    store.SELECTED
    + """,
    b.built_at, b.changes AS build_changes, b.schema_version, b.builder, b.exact, b.unserved, b.turns_at
"""
    + store.JOINED
    + """
LEFT JOIN derived_build b ON b.org = i.org AND b.item_id = i.item_id AND b.built_at = v.valid_at
WHERE i.org = :org AND i.namespace = :namespace AND i.memory_key = :memory_key AND i.agent = '-'
    AND i.user_id = :user_id AND i.memory_type = 'structured_profile'
"""
)

FACTS_NOW = (
    """
SELECT CASE WHEN EXISTS (SELECT 1 FROM ledger_item i WHERE i.org = :org AND i.namespace = :namespace
        AND i.user_id = :user_id AND """  # noqa: S608  # the parts are constants
    + IS_FACT
    + " AND "
    + STILL
    + """) THEN 1 ELSE 0 END AS present,
    CASE WHEN EXISTS (SELECT 1 FROM ledger_item i WHERE i.org = :org AND i.namespace = :namespace
        AND i.user_id = :user_id AND """
    + IS_FACT
    + """ AND i.expires_at IS NOT NULL AND i.expires_at > :since AND i.expires_at <= :now)
        THEN 1 ELSE 0 END AS turned
"""
)

FACTS = (
    store.COLUMNS
    + "WHERE i.org = :org AND i.namespace = :namespace AND i.user_id = :user_id AND "
    + IS_FACT
    + " AND "
    + STILL
    + " ORDER BY i.version DESC LIMIT :most"
)

NEXT_USER: Final = (
    "(SELECT i.user_id FROM ledger_item i WHERE i.org = :org AND i.namespace = :namespace AND "  # noqa: S608  # the parts are constants
    + IS_FACT
    + " AND i.user_id > "
)
FIRST: Final = " ORDER BY i.user_id LIMIT 1)"

# From one user to the next by the index: a page costs as many look-ups as it has users, however many facts they have.
USERS = (
    "WITH RECURSIVE named (user_id) AS (SELECT "  # noqa: S608  # the parts are constants
    + NEXT_USER
    + ":after"
    + FIRST
    + " UNION ALL SELECT "
    + NEXT_USER
    + "named.user_id"
    + FIRST
    + """ FROM named WHERE named.user_id IS NOT NULL)
SELECT user_id FROM named WHERE user_id IS NOT NULL LIMIT :most
"""
)
ANY_FACT = (
    "SELECT 1 AS one FROM ledger_item i WHERE i.org = :org AND i.namespace = :namespace AND i.user_id = :user_id AND "  # noqa: S608  # the parts are constants
    + IS_FACT
    + " LIMIT 1"
)

PUT_BUILD = """
INSERT INTO derived_build (org, item_id, built_at, namespace, changes, schema_version, builder, exact, unserved,
    turns_at)
VALUES (:org, :item_id, :built_at, :namespace, :changes, :schema_version, :builder, :exact, :unserved, :turns_at)
"""
LAST_BUILD = """
SELECT built_at, changes, schema_version FROM derived_build
WHERE org = :org AND item_id = :item_id ORDER BY built_at DESC LIMIT 1
"""
MOMENTS = """
SELECT valid_at FROM ledger_version WHERE org = :org AND item_id = :item_id AND valid_at >= :now
UNION SELECT built_at AS valid_at FROM derived_build WHERE org = :org AND item_id = :item_id AND built_at >= :now
"""
PUT_SOURCE = """
INSERT INTO derived_source (org, item_id, built_at, property, place, namespace, source_id, source_version, span_start,
    span_characters)
VALUES (:org, :item_id, :built_at, :property, :place, :namespace, :source_id, :source_version, :span_start,
    :span_characters)
"""
SOURCES = """
SELECT s.property, s.place, s.source_id, s.source_version, s.span_start, s.span_characters, i.memory_key,
    i.status AS item_status, i.sensitivity, i.expires_at, i.version AS head_version, v.value,
    v.sensitivity AS read_sensitivity
FROM derived_source s
LEFT JOIN ledger_item i ON i.org = s.org AND i.item_id = s.source_id
LEFT JOIN ledger_version v ON v.org = s.org AND v.item_id = s.source_id AND v.version = s.source_version
WHERE s.org = :org AND s.item_id = :item_id AND s.built_at = :built_at
    AND (:any_property = 1 OR s.property = :property)
ORDER BY s.property, s.place
"""
CLAIM = """
INSERT INTO derived_user (org, namespace, user_id, changes, waiting_since, read_at, building_until, wanted, failures,
    failed_at)
VALUES (:org, :namespace, :user_id, 0, 0, 0, :until, 0, 0, 0)
ON CONFLICT (org, namespace, user_id) DO UPDATE SET building_until = excluded.building_until, waiting_since = 0
WHERE derived_user.building_until <= :now
"""
WANT = """
INSERT INTO derived_user (org, namespace, user_id, changes, waiting_since, read_at, building_until, wanted, failures,
    failed_at)
VALUES (:org, :namespace, :user_id, 0, 0, 0, 0, 1, 0, 0)
ON CONFLICT (org, namespace, user_id) DO UPDATE SET wanted = 1, failures = 0
"""
UNWANT = "UPDATE derived_user SET wanted = 0 WHERE org = :org AND namespace = :namespace AND user_id = :user_id"

RELEASE = """
UPDATE derived_user SET building_until = 0 WHERE org = :org AND namespace = :namespace AND user_id = :user_id
"""
BUILT = """
UPDATE derived_user SET building_until = 0, wanted = 0, failures = 0,
    read_at = CASE WHEN read_at < :read_at THEN CAST(:read_at AS BIGINT) ELSE read_at END
WHERE org = :org AND namespace = :namespace AND user_id = :user_id
"""
FAILED = """
UPDATE derived_user SET building_until = 0, failures = failures + 1, failed_at = :failed_at
WHERE org = :org AND namespace = :namespace AND user_id = :user_id
"""
HEADS = (
    """
SELECT i.item_id, i.version, CASE WHEN """
    + IS_FACT
    + """ THEN 1 ELSE 0 END AS served FROM ledger_item i
WHERE i.org = :org AND i.item_id IN (:ids)
"""
)
STILL_SAID = """
SELECT item_id, version FROM ledger_version
WHERE org = :org AND item_id IN (:ids) AND version IN (:versions) AND value IS NOT NULL
"""

ASK_ONCE = """
INSERT INTO job (org, kind, subject, generation, run_at, attempts, leased_until)
VALUES (:org, :kind, :subject, :generation, 0, 0, 0)
ON CONFLICT (org, kind, subject) DO UPDATE
SET generation = excluded.generation, run_at = 0, attempts = 0, leased_until = 0
WHERE job.run_at > :now
"""

PURGES = (
    "DELETE FROM profile_schema WHERE org = :org AND namespace = :namespace",
    "DELETE FROM derived_watch WHERE org = :org AND namespace = :namespace",
    "DELETE FROM derived_user WHERE org = :org AND namespace = :namespace",
    "DELETE FROM derived_build WHERE org = :org AND namespace = :namespace",
    "DELETE FROM derived_source WHERE org = :org AND namespace = :namespace",
)
