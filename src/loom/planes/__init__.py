"""The planes: each folder is one kind of memory, complete in itself.

Every folder has the same rooms: `__init__` says what it is and exports its
OPS, LATE, SWEEPS and LEG; `ops*` are the operations, `rules` what is allowed, `store`
where it is kept. Planes do not know each other.
"""
