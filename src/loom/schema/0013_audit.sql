-- What changed access and what took information away: who did it, when, and what it was about, as names and ids.
-- `tenant` is the org that a record concerns: the row's own, but for what is kept with the system's rows.
CREATE TABLE audit_record (
    org       TEXT   NOT NULL,
    tenant    TEXT   NOT NULL,
    at        BIGINT NOT NULL,
    record_id BIGINT NOT NULL,
    op        TEXT   NOT NULL,
    namespace TEXT   NOT NULL,
    principal TEXT   NOT NULL,
    agent     TEXT   NOT NULL,
    about     TEXT   NOT NULL,
    outcome   TEXT   NOT NULL,
    PRIMARY KEY (org, tenant, at, record_id)
);

CREATE INDEX audit_record_age ON audit_record (org, at);
CREATE INDEX audit_record_namespace ON audit_record (org, namespace);
