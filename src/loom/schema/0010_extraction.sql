-- Messages that a language model is yet to read. `request` holds what they say, and goes with the row once it did.
CREATE TABLE memory_extraction (
    org           TEXT    NOT NULL,
    extraction_id BIGINT  NOT NULL,
    namespace     TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    principal     TEXT    NOT NULL,
    read_scope    INTEGER NOT NULL,
    request       TEXT    NOT NULL,
    attempts      INTEGER NOT NULL,
    taken_until   BIGINT  NOT NULL,
    created_at    BIGINT  NOT NULL,
    PRIMARY KEY (org, extraction_id)
);

CREATE INDEX memory_extraction_place ON memory_extraction (org, namespace, user_id);
CREATE INDEX memory_extraction_age ON memory_extraction (org, created_at);
