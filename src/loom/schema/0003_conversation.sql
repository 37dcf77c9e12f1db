-- One row a conversation of one user: what it is called, and sums over its turns that lists show.
-- `title` is the given one where `titled` is 1, else the beginning of the first thing the user said.
CREATE TABLE conversation_session (
    org         TEXT    NOT NULL,
    session_key BIGINT  NOT NULL,
    namespace   TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    session_id  TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    title       TEXT    NOT NULL,
    titled      INTEGER NOT NULL,
    turn_count  INTEGER NOT NULL,
    next_seq    INTEGER NOT NULL,
    next_place  INTEGER NOT NULL,
    first_at    BIGINT  NOT NULL,
    last_at     BIGINT  NOT NULL,
    created_at  BIGINT  NOT NULL,
    PRIMARY KEY (org, session_key)
);

CREATE UNIQUE INDEX conversation_session_name ON conversation_session (org, namespace, session_id, user_id);
CREATE INDEX conversation_session_newest ON conversation_session (org, namespace, last_at, session_key);

-- One row a message, in the order in which they were appended (`seq`). A turn in which something was said
-- (`spoken` 1) has a `place` of its own among those; any other has the place of the last such turn before it.
-- `content` is the message as it came, `said` what it says in words, `aside` what a tool call or a thought says.
CREATE TABLE conversation_turn (
    org            TEXT    NOT NULL,
    item_id        BIGINT  NOT NULL,
    session_key    BIGINT  NOT NULL,
    seq            INTEGER NOT NULL,
    spoken         INTEGER NOT NULL,
    place          INTEGER NOT NULL,
    message_id     TEXT    NOT NULL,
    role           TEXT    NOT NULL,
    speaker        TEXT    NOT NULL,
    agent          TEXT    NOT NULL,
    run_id         TEXT    NOT NULL,
    said_at        BIGINT  NOT NULL,
    said           TEXT    NOT NULL,
    aside          TEXT    NOT NULL,
    content        TEXT    NOT NULL,
    content_sha256 TEXT    NOT NULL,
    created_at     BIGINT  NOT NULL,
    PRIMARY KEY (org, item_id)
);

CREATE UNIQUE INDEX conversation_turn_order ON conversation_turn (org, session_key, seq);
CREATE UNIQUE INDEX conversation_turn_message ON conversation_turn (org, session_key, message_id);
CREATE INDEX conversation_turn_place ON conversation_turn (org, session_key, place);
