"""Versioned keyed rows, which memory and profile share.

`rules` says what may happen to a row, `store` where rows are kept, `indexing`
keeps the indexes in step in the same transaction, `conditions` is the part of
the rules that SQL applies to many rows at once, `embedding` makes the
vectors that a write could not.
"""
