-- Every key begins with org. Times are microseconds UTC, except version and item_id, which are
-- stamps (nanoseconds, strictly increasing in one org's store). JSON is text.

CREATE TABLE namespace (
    org          TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    description  TEXT    NOT NULL,
    created_at   BIGINT  NOT NULL,
    last_version BIGINT  NOT NULL,
    PRIMARY KEY (org, name)
);

-- One row a key: who it belongs to, its latest version, and what is not versioned (pin, lock, time to live).
CREATE TABLE ledger_item (
    org         TEXT    NOT NULL,
    item_id     BIGINT  NOT NULL,
    namespace   TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    memory_key  TEXT    NOT NULL,
    session_id  TEXT    NOT NULL,
    version     BIGINT  NOT NULL,
    status      TEXT    NOT NULL,
    memory_type TEXT    NOT NULL,
    sensitivity TEXT    NOT NULL,
    expires_at  BIGINT,
    ended_at    BIGINT,
    pinned      INTEGER NOT NULL,
    lock_mode   TEXT    NOT NULL,
    lock_reason TEXT    NOT NULL,
    PRIMARY KEY (org, item_id)
);

CREATE UNIQUE INDEX ledger_item_key ON ledger_item (org, namespace, memory_key, agent, user_id);
CREATE INDEX ledger_item_type ON ledger_item (org, namespace, memory_type, status);
CREATE INDEX ledger_item_expiry ON ledger_item (org, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ledger_item_ended ON ledger_item (org, ended_at) WHERE ended_at IS NOT NULL;

-- Every version of every key. The value is null where there is none (tombstone) or none any more.
CREATE TABLE ledger_version (
    org            TEXT    NOT NULL,
    item_id        BIGINT  NOT NULL,
    version        BIGINT  NOT NULL,
    status         TEXT    NOT NULL,
    session_id     TEXT    NOT NULL,
    run_id         TEXT    NOT NULL,
    memory_type    TEXT    NOT NULL,
    value          TEXT,
    content_sha256 TEXT    NOT NULL,
    value_length   INTEGER NOT NULL,
    char_limit     INTEGER,
    tags           TEXT    NOT NULL,
    confidence     DOUBLE PRECISION NOT NULL,
    source_trace   TEXT    NOT NULL,
    sensitivity    TEXT    NOT NULL,
    valid_at       BIGINT,
    valid_to       BIGINT,
    expires_at     BIGINT,
    created_at     BIGINT  NOT NULL,
    PRIMARY KEY (org, item_id, version)
);

-- Work to do later, enqueued in the transaction of the write that causes it. One row a subject:
-- a second request for the same work while the first waits is the same work.
CREATE TABLE job (
    org         TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    generation  BIGINT  NOT NULL,
    run_at      BIGINT  NOT NULL,
    attempts    INTEGER NOT NULL,
    leased_until BIGINT NOT NULL,
    PRIMARY KEY (org, kind, subject)
);

CREATE INDEX job_due ON job (org, run_at);

CREATE TABLE idempotency (
    org             TEXT   NOT NULL,
    principal       TEXT   NOT NULL,
    idempotency_key TEXT   NOT NULL,
    op              TEXT   NOT NULL,
    body_sha256     TEXT   NOT NULL,
    answer          TEXT   NOT NULL,
    expires_at      BIGINT NOT NULL,
    PRIMARY KEY (org, principal, idempotency_key)
);

CREATE INDEX idempotency_expiry ON idempotency (org, expires_at);

CREATE TABLE access_token (
    org          TEXT   NOT NULL,
    token_id     TEXT   NOT NULL,
    secret_sha256 TEXT  NOT NULL,
    name         TEXT   NOT NULL,
    role         TEXT   NOT NULL,
    pins         TEXT   NOT NULL,
    namespaces   TEXT,
    read_scope   TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    revoked_at   BIGINT,
    last_used_at BIGINT,
    PRIMARY KEY (org, token_id)
);

-- Who read a profile, summed by day, so that a window is a bounded scan.
CREATE TABLE profile_read (
    org          TEXT    NOT NULL,
    namespace    TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    day          INTEGER NOT NULL,
    last_read_at BIGINT  NOT NULL,
    read_count   BIGINT  NOT NULL,
    last_op      TEXT    NOT NULL,
    PRIMARY KEY (org, namespace, day, agent, user_id)
);
