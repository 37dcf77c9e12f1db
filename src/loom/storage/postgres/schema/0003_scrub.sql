-- Transactions that took text away and want its bytes gone from the files. One row a transaction, so that those who
-- remove never wait for each other; upkeep strikes it off when the work is done, whatever process that happens in.
-- Neither table has an org: the work is the whole database's, and the rows say nothing of anyone.
CREATE TABLE store_scrub (
    transaction_id BIGINT      NOT NULL,
    asked_at       TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (transaction_id)
);

-- Tables too large to be written anew while others wait: the free space in this file may hold removed text.
CREATE TABLE store_unwiped (
    table_name TEXT        NOT NULL,
    file_node  BIGINT      NOT NULL,
    since      TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (table_name)
);
