-- The embedding spaces that the store knows, with the system's rows. Searches use the one whose state is 'serving'; a
-- reindex fills the one that is 'building'; of the others something was measured once. Described and measured are JSON.
CREATE TABLE embedding_space (
    org         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    dimension   INTEGER NOT NULL,
    described   TEXT    NOT NULL,
    measured    TEXT    NOT NULL,
    recorded_at BIGINT  NOT NULL,
    PRIMARY KEY (org, fingerprint)
);
