-- JSON Schemas of structured profiles, every version of each namespace's; a text that is empty says it was deleted.
CREATE TABLE profile_schema (
    org           TEXT   NOT NULL,
    namespace     TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    definition    TEXT   NOT NULL,
    schema_sha256 TEXT   NOT NULL,
    updated_by    TEXT   NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (org, namespace, version)
);

-- Namespaces whose users each have a row that is built from their other rows, and the job that builds it.
CREATE TABLE derived_watch (
    org       TEXT NOT NULL,
    namespace TEXT NOT NULL,
    job_kind  TEXT NOT NULL,
    PRIMARY KEY (org, namespace)
);

-- A user of a watched namespace: `changes` counts what happened to the rows that are built from, `waiting_since`
-- is when the first of those did that no build has looked at (0 for none), `read_at` when a build last looked.
CREATE TABLE derived_user (
    org            TEXT    NOT NULL,
    namespace      TEXT    NOT NULL,
    user_id        TEXT    NOT NULL,
    changes        BIGINT  NOT NULL,
    waiting_since  BIGINT  NOT NULL,
    read_at        BIGINT  NOT NULL,
    building_until BIGINT  NOT NULL,
    wanted         INTEGER NOT NULL,
    failures       INTEGER NOT NULL,
    failed_at      BIGINT  NOT NULL,
    PRIMARY KEY (org, namespace, user_id)
);

-- A build of the row `item_id`: what it read. A version of the row is of the build whose `built_at` is its `valid_at`.
-- `exact` is 0 where a value may come from rows that its sources do not name.
CREATE TABLE derived_build (
    org            TEXT    NOT NULL,
    item_id        BIGINT  NOT NULL,
    built_at       BIGINT  NOT NULL,
    namespace      TEXT    NOT NULL,
    changes        BIGINT  NOT NULL,
    schema_version BIGINT  NOT NULL,
    builder        TEXT    NOT NULL,
    exact          INTEGER NOT NULL,
    unserved       INTEGER NOT NULL,
    turns_at       BIGINT,
    PRIMARY KEY (org, item_id, built_at)
);

-- Where each property of a build comes from: a version of a row, and a part of its text; never the text itself.
CREATE TABLE derived_source (
    org             TEXT    NOT NULL,
    item_id         BIGINT  NOT NULL,
    built_at        BIGINT  NOT NULL,
    property        TEXT    NOT NULL,
    place           INTEGER NOT NULL,
    namespace       TEXT    NOT NULL,
    source_id       BIGINT  NOT NULL,
    source_version  BIGINT  NOT NULL,
    span_start      INTEGER NOT NULL,
    span_characters INTEGER NOT NULL,
    PRIMARY KEY (org, item_id, built_at, property, place)
);

CREATE INDEX derived_source_row ON derived_source (org, item_id, source_id);

-- A user's facts, the newest first, and those that end. Both stay small where no row has the property they ask for.
CREATE INDEX ledger_item_fact ON ledger_item (org, namespace, user_id, version)
    WHERE status = 'live' AND sensitivity = 'normal' AND memory_type <> 'profile'
        AND memory_type <> 'structured_profile';
CREATE INDEX ledger_item_fact_end ON ledger_item (org, namespace, user_id, expires_at)
    WHERE expires_at IS NOT NULL AND status = 'live';
