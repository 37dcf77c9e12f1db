-- Whether a repository's index was asked for by somebody who can read the server's files anyway, and not by a token.
ALTER TABLE code_repository ADD COLUMN trusted INTEGER NOT NULL DEFAULT 0;

-- How often the language model had no answer to these messages that can be used.
ALTER TABLE memory_extraction ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
