"""What can be set about the server engine."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """Bounds, each with the value most installations keep.

    Attributes:
        connections_min: connections kept open.
        connections_max: connections this process may hold.
        waiting_max: calls that may wait for a connection, or for one turn; more are refused at once.
        connection_wait_s: how long a call waits for a connection.
        connect_timeout_s: how long the server may take to accept one.
        statement_timeout_s: how long one statement may run.
        lock_timeout_s: how long a statement waits for another transaction's lock.
        idle_timeout_s: how long a transaction may stand still before the server ends it, so
            that a process that hangs holds no lock for ever.
        turn_wait_s: how long a write waits for its turn among those of this process that want the same.
        together_max: writes that share a commit.
        together_s: how long the first of them waits for others that still want to write, so that other processes
            get what they wait for.
        commit_wait_s: how long a write that has done its work waits for the commit that it shares.
        migrate_wait_s: how long a start waits for another server that brings the tables up to date.
        replica_url: a server that follows the database, for reads that may be a moment behind; empty for none.
        replica_wait_s: how long a read waits for a connection to it before it goes to the database itself.
        replica_rest_s: how long no read tries it once it failed.
        rewrite_bytes_max: a larger table, indexes and all, is not locked for being written anew after a removal.
            Measured on two shared cores: 20,000 memories make a word table of 68 MB, which took 1.4 s; the
            other tables take a third as long for their size.
        clock_ns: nanoseconds since 1970.
    """

    connections_min: int = 1
    connections_max: int = 16
    waiting_max: int = 256
    connection_wait_s: float = 10.0
    connect_timeout_s: int = 10
    statement_timeout_s: int = 30
    lock_timeout_s: int = 10
    idle_timeout_s: int = 30
    turn_wait_s: float = 10.0
    together_max: int = 16
    together_s: float = 0.05
    commit_wait_s: float = 60.0
    migrate_wait_s: int = 300
    replica_url: str = field(default="", repr=False)
    replica_wait_s: float = 0.5
    replica_rest_s: float = 10.0
    rewrite_bytes_max: int = 128 * 1024 * 1024
    clock_ns: Callable[[], int] = time.time_ns
