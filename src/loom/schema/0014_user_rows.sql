-- The rows of one user, whatever became of them: what an imported profile may not tell is looked for among them.
CREATE INDEX ledger_item_user ON ledger_item (org, namespace, user_id, item_id) WHERE user_id <> '-';
