-- What a namespace stands for outside Loom: a code namespace holds one repository, a tracker namespace one
-- repository's issues. `repository` is folded (see access.namespaces.repository_key), so that spellings of one meet.
-- `tracker` names the tracker namespace that a code namespace asks; empty for the one of the same repository.
CREATE TABLE namespace_binding (
    org        TEXT NOT NULL,
    name       TEXT NOT NULL,
    repository TEXT NOT NULL,
    tracker    TEXT NOT NULL,
    PRIMARY KEY (org, name)
);

CREATE INDEX namespace_binding_repository ON namespace_binding (org, repository);

-- One report of a tracker. `traits` is what its text names (frames, exceptions, paths, symbols, mentions), as JSON;
-- `stamp` is the version of the last write, `updated_at` when the tracker itself changed it, where that is known.
CREATE TABLE tracker_issue (
    org          TEXT   NOT NULL,
    item_id      BIGINT NOT NULL,
    namespace    TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    number       BIGINT NOT NULL,
    agent        TEXT   NOT NULL,
    session_id   TEXT   NOT NULL,
    run_id       TEXT   NOT NULL,
    stamp        BIGINT NOT NULL,
    title        TEXT   NOT NULL,
    body         TEXT   NOT NULL,
    state        TEXT   NOT NULL,
    component    TEXT   NOT NULL,
    version      TEXT   NOT NULL,
    labels       TEXT   NOT NULL,
    url          TEXT   NOT NULL,
    duplicate_of BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT,
    traits       TEXT   NOT NULL,
    PRIMARY KEY (org, item_id)
);

CREATE UNIQUE INDEX tracker_issue_number ON tracker_issue (org, namespace, number, user_id);
CREATE INDEX tracker_issue_created ON tracker_issue (org, namespace, created_at);

-- The same names one a row, so that reports that share a rare one are found by it.
CREATE TABLE tracker_trait (
    org       TEXT   NOT NULL,
    namespace TEXT   NOT NULL,
    kind      TEXT   NOT NULL,
    name      TEXT   NOT NULL,
    item_id   BIGINT NOT NULL,
    PRIMARY KEY (org, namespace, kind, name, item_id)
);

CREATE INDEX tracker_trait_item ON tracker_trait (org, item_id);
