-- Documents. A row of knowledge_document is a uri of a user, and stands for its latest revision.

CREATE TABLE knowledge_document (
    org         TEXT    NOT NULL,
    document_id BIGINT  NOT NULL,
    namespace   TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    session_id  TEXT    NOT NULL,
    uri         TEXT    NOT NULL,
    uri_sha256  TEXT    NOT NULL,
    revision    INTEGER NOT NULL,
    version     BIGINT  NOT NULL,
    title       TEXT    NOT NULL,
    tags        TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    cut_until   TEXT    NOT NULL,
    chunk_count INTEGER NOT NULL,
    space       TEXT    NOT NULL,
    PRIMARY KEY (org, document_id)
);

CREATE UNIQUE INDEX knowledge_document_uri ON knowledge_document (org, namespace, user_id, uri_sha256);
CREATE INDEX knowledge_document_newest ON knowledge_document (org, namespace, version);
CREATE INDEX knowledge_document_space ON knowledge_document (org, state, space);

-- Every revision of every document. The outline is JSON: line, level and title of headings that the text does not mark.
CREATE TABLE knowledge_revision (
    org             TEXT    NOT NULL,
    document_id     BIGINT  NOT NULL,
    revision        INTEGER NOT NULL,
    agent           TEXT    NOT NULL,
    session_id      TEXT    NOT NULL,
    run_id          TEXT    NOT NULL,
    title           TEXT    NOT NULL,
    format          TEXT    NOT NULL,
    file_name       TEXT    NOT NULL,
    content_sha256  TEXT    NOT NULL,
    byte_count      BIGINT  NOT NULL,
    character_count BIGINT  NOT NULL,
    line_count      INTEGER NOT NULL,
    page_count      INTEGER NOT NULL,
    markdown        INTEGER NOT NULL,
    outline         TEXT    NOT NULL,
    created_at      BIGINT  NOT NULL,
    PRIMARY KEY (org, document_id, revision)
);

CREATE TABLE knowledge_text (
    org             TEXT    NOT NULL,
    document_id     BIGINT  NOT NULL,
    revision        INTEGER NOT NULL,
    part            INTEGER NOT NULL,
    page            INTEGER NOT NULL,
    first_line      INTEGER NOT NULL,
    first_character BIGINT  NOT NULL,
    last_line       INTEGER NOT NULL,
    content         TEXT    NOT NULL,
    PRIMARY KEY (org, document_id, revision, part)
);

-- The passages of a document's latest revision. A passage's id is its id in both indexes.
CREATE TABLE knowledge_chunk (
    org         TEXT    NOT NULL,
    chunk_id    BIGINT  NOT NULL,
    document_id BIGINT  NOT NULL,
    revision    INTEGER NOT NULL,
    ordinal     INTEGER NOT NULL,
    namespace   TEXT    NOT NULL,
    headings    TEXT    NOT NULL,
    first_line  INTEGER NOT NULL,
    last_line   INTEGER NOT NULL,
    first_page  INTEGER NOT NULL,
    last_page   INTEGER NOT NULL,
    content     TEXT    NOT NULL,
    space       TEXT    NOT NULL,
    PRIMARY KEY (org, chunk_id)
);

CREATE UNIQUE INDEX knowledge_chunk_document ON knowledge_chunk (org, document_id, revision, ordinal);

-- Files on their way, in base64; forgotten when they are added, or after a while.
CREATE TABLE knowledge_upload (
    org        TEXT    NOT NULL,
    upload_id  TEXT    NOT NULL,
    part       INTEGER NOT NULL,
    principal  TEXT    NOT NULL,
    namespace  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    byte_count INTEGER NOT NULL,
    content    TEXT    NOT NULL,
    created_at BIGINT  NOT NULL,
    PRIMARY KEY (org, upload_id, part)
);

CREATE INDEX knowledge_upload_age ON knowledge_upload (org, created_at);
