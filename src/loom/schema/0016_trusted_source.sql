-- Whether a repository's index was asked for by somebody who can read the server's files anyway, and not by a token.
ALTER TABLE code_repository ADD COLUMN trusted INTEGER NOT NULL DEFAULT 0;
