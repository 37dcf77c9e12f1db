-- One repository for each namespace of kind code. Counts and state are what code.index_status shows.
CREATE TABLE code_repository (
    org           TEXT    NOT NULL,
    namespace     TEXT    NOT NULL,
    repository_id BIGINT  NOT NULL,
    source        TEXT    NOT NULL,
    source_kind   TEXT    NOT NULL,
    revision      TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    commit_id     TEXT    NOT NULL,
    vectors       INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    generation    BIGINT  NOT NULL,
    tries         INTEGER NOT NULL,
    files_total   INTEGER NOT NULL,
    files_done    INTEGER NOT NULL,
    skipped       TEXT    NOT NULL,
    problem       TEXT    NOT NULL,
    requested_at  BIGINT  NOT NULL,
    finished_at   BIGINT,
    PRIMARY KEY (org, namespace)
);

CREATE UNIQUE INDEX code_repository_id ON code_repository (org, repository_id);

-- What is left of an indexing under way, so that it goes on after a restart.
CREATE TABLE code_pending (
    org       TEXT    NOT NULL,
    namespace TEXT    NOT NULL,
    path      TEXT    NOT NULL,
    digest    TEXT    NOT NULL,
    byte_size INTEGER NOT NULL,
    PRIMARY KEY (org, namespace, path)
);

-- Files as they were indexed. `content` is the text, UTF-8, deflated.
CREATE TABLE code_file (
    org        TEXT    NOT NULL,
    namespace  TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    file_id    BIGINT  NOT NULL,
    digest     TEXT    NOT NULL,
    language   TEXT    NOT NULL,
    line_count INTEGER NOT NULL,
    broken     INTEGER NOT NULL,
    content    BYTEA   NOT NULL,
    PRIMARY KEY (org, namespace, path)
);

CREATE UNIQUE INDEX code_file_id ON code_file (org, file_id);

CREATE TABLE code_symbol (
    org          TEXT    NOT NULL,
    item_id      BIGINT  NOT NULL,
    namespace    TEXT    NOT NULL,
    file_id      BIGINT  NOT NULL,
    parent_id    BIGINT  NOT NULL,
    kind         TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    name_key     TEXT    NOT NULL,
    qualified    TEXT    NOT NULL,
    signature    TEXT    NOT NULL,
    docstring    TEXT    NOT NULL,
    start_line   INTEGER NOT NULL,
    end_line     INTEGER NOT NULL,
    vector_space TEXT    NOT NULL,
    PRIMARY KEY (org, item_id)
);

CREATE INDEX code_symbol_name ON code_symbol (org, namespace, name_key);
CREATE INDEX code_symbol_file ON code_symbol (org, file_id);
CREATE INDEX code_symbol_space ON code_symbol (org, namespace, vector_space);

-- Where a name is used in a file: `lines` is a JSON list of line numbers.
CREATE TABLE code_use (
    org       TEXT   NOT NULL,
    namespace TEXT   NOT NULL,
    name      TEXT   NOT NULL,
    file_id   BIGINT NOT NULL,
    role      TEXT   NOT NULL,
    receiver  TEXT   NOT NULL,
    lines     TEXT   NOT NULL,
    PRIMARY KEY (org, namespace, name, file_id, role, receiver)
);

CREATE INDEX code_use_file ON code_use (org, file_id);
