-- A list of the newest first reads its pages from here, and does not sort the namespace for each of them.
CREATE INDEX ledger_item_newest ON ledger_item (org, namespace, version);
