-- The engine's own tables. The record of migrations itself is made before any step runs.

-- Every org that was ever written to.
CREATE TABLE store_org (
    org TEXT NOT NULL,
    PRIMARY KEY (org)
);

-- Stamps come from one sequence, moved up to the caller's clock. A sequence gives a number once, whatever becomes of
-- the transaction, and the commit that keeps the number also keeps the sequence's place, so a crash repeats nothing
-- that was kept. The lock makes "read, compare, move up" one step; it is held for microseconds, not until the end of
-- the transaction, so writers of one org do not wait for each other here. An org that took numbers from another store
-- that are ahead of the clock counts on from its own row in store_stamp until the clock has passed them.
CREATE SEQUENCE store_stamp_number AS BIGINT;

CREATE TABLE store_stamp (
    org  TEXT   NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (org)
);

CREATE FUNCTION store_next_stamp(for_org TEXT, at_least BIGINT, above BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    given BIGINT;
    own BIGINT;
BEGIN
    PERFORM pg_advisory_lock(1280266061, 1);
    given := greatest(nextval('store_stamp_number'), at_least);
    PERFORM setval('store_stamp_number', given);
    PERFORM pg_advisory_unlock(1280266061, 1);
    UPDATE store_stamp SET last = greatest(last, above) + 1 WHERE org = for_org AND last >= given
    RETURNING last INTO own;
    RETURN coalesce(own, given);
END
$$;

-- A text's tokens as lexemes: the shelf's sign, s or w for stem or word, the token. A long text has several parts.
CREATE TABLE text_entry (
    org         TEXT     NOT NULL,
    shelf_id    BIGINT   NOT NULL,
    item_id     BIGINT   NOT NULL,
    part        INTEGER  NOT NULL,
    token_count INTEGER  NOT NULL,
    tokens      TSVECTOR NOT NULL,
    PRIMARY KEY (org, shelf_id, item_id, part) INCLUDE (token_count)
) WITH (toast_tuple_target = 8160);

CREATE TABLE vector_space (
    org       TEXT    NOT NULL,
    space     TEXT    NOT NULL,
    dimension INTEGER NOT NULL,
    PRIMARY KEY (org, space)
);

CREATE TABLE vector_row (
    org       TEXT    NOT NULL,
    shelf_id  BIGINT  NOT NULL,
    space_id  BIGINT  NOT NULL,
    item_id   BIGINT  NOT NULL,
    part      INTEGER NOT NULL,
    embedding HALFVEC NOT NULL,
    PRIMARY KEY (org, shelf_id, space_id, item_id, part)
) WITH (toast_tuple_target = 8160);
