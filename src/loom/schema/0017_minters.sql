-- Who minted a token: another token's id, or `local` for a person who can read the store's files; null: not known.
-- The generation is the number of tokens through which it comes from such a person.
ALTER TABLE access_token ADD COLUMN minted_by TEXT;
ALTER TABLE access_token ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;

CREATE INDEX access_token_minter ON access_token (org, minted_by);
