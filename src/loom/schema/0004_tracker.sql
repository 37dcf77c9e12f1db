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
