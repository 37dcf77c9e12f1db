-- Signing in to the dashboard. Codes and cookies are kept as hashes; `principal` is a token's id, or `local`
-- for a person who can read the store's files.
CREATE TABLE sign_in_code (
    org         TEXT   NOT NULL,
    code_sha256 TEXT   NOT NULL,
    principal   TEXT   NOT NULL,
    expires_at  BIGINT NOT NULL,
    PRIMARY KEY (org, code_sha256)
);

CREATE INDEX sign_in_code_expiry ON sign_in_code (org, expires_at);

CREATE TABLE sign_in_session (
    org           TEXT   NOT NULL,
    cookie_sha256 TEXT   NOT NULL,
    principal     TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    PRIMARY KEY (org, cookie_sha256)
);

CREATE INDEX sign_in_session_expiry ON sign_in_session (org, expires_at);
