-- The engine's own tables. The record of migrations itself is made before any step runs.

CREATE TABLE store_meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE store_stamp (
    org  TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A shelf's tokens live in the FTS5 table text_<shelf_id>, made with the shelf.
-- AUTOINCREMENT: an id is never used again, so nothing remembered about a dropped shelf can be taken for a new one.
CREATE TABLE text_shelf (
    shelf_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    row_count  INTEGER NOT NULL DEFAULT 0,
    unscrubbed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (collection, namespace)
) STRICT;

CREATE TABLE vector_shelf (
    shelf_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    UNIQUE (collection, namespace)
) STRICT;

CREATE TABLE vector_space (
    space_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    dimension INTEGER NOT NULL
) STRICT;

-- data: little-endian float16 numbers; NULL once removed, so that memory caches learn of it by seq.
CREATE TABLE vector_row (
    row_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    shelf_id INTEGER NOT NULL,
    space_id INTEGER NOT NULL,
    item_id  INTEGER NOT NULL,
    part     INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    data     BLOB
) STRICT;
CREATE UNIQUE INDEX vector_row_by_item ON vector_row (shelf_id, item_id, space_id, part);
CREATE INDEX vector_row_by_seq ON vector_row (shelf_id, space_id, seq);
CREATE INDEX vector_row_removed ON vector_row (row_id) WHERE data IS NULL;

-- last: the newest change of any vector. Writers are one at a time, so it rises in the order of commits.
-- A cache older than a shelf's purged_seq has missed removals and must be loaded anew.
CREATE TABLE vector_change (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;
INSERT INTO vector_change (one, last) VALUES (1, 0);

CREATE TABLE vector_purge (
    shelf_id   INTEGER NOT NULL,
    space_id   INTEGER NOT NULL,
    purged_seq INTEGER NOT NULL,
    PRIMARY KEY (shelf_id, space_id)
) STRICT, WITHOUT ROWID;
