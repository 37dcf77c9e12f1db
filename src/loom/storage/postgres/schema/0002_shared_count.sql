-- Counts that all servers add to, for limits. A count is kept for its period and the one after it.
CREATE TABLE shared_count (
    org     TEXT   NOT NULL,
    name    TEXT   NOT NULL,
    period  BIGINT NOT NULL,
    counted BIGINT NOT NULL,
    PRIMARY KEY (org, name, period)
);
