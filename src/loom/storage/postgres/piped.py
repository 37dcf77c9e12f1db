"""A connection whose pipelines end as a transaction needs it.

psycopg ends a pipeline with a Sync and then a Flush. The server takes the Flush for a sign of life that asks
for nothing, and from then on does not watch how long the transaction stands still: a process that hangs would
hold its locks for ever. A Sync makes the server send everything already, so here the Flush is left out.
"""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg.abc import PQGen
from psycopg.rows import TupleRow


class _Pipeline(psycopg.Pipeline):
    def _exit_gen(self) -> PQGen[None]:
        """Send a Sync and fetch all results that are left."""
        try:
            self._enqueue_sync()
            yield from self._communicate_gen()
        finally:
            yield from self._fetch_gen(flush=False)


class PipedConnection(psycopg.Connection[TupleRow]):
    """A connection for transactions that send statements in batches."""

    @contextmanager
    def pipeline(self) -> Generator[psycopg.Pipeline, None, None]:
        """Send what is executed in the block in one go; its results are there when the block has ended."""
        with self.lock:
            self._check_connection_ok()
            pipeline = self._pipeline = _Pipeline(self)
        try:
            with pipeline:
                yield pipeline
        finally:
            with self.lock:
                self._pipeline = None
