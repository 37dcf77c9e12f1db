"""A connection whose pipelines end as a transaction needs it.

The server watches how long a transaction stands still only after a Sync. psycopg sends what is executed in a
pipeline at once, and the Sync in the end: a process that hangs in between would hold its locks for ever. Here
everything is kept until the end and goes in one piece. There psycopg sends a Flush after the Sync, which the
server takes for a sign of life that asks for nothing, and stops to watch; a Sync makes it send everything
already, so the Flush is left out.
"""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg.abc import PQGen
from psycopg.generators import send
from psycopg.rows import TupleRow


class _Pipeline(psycopg.Pipeline):
    _ends = False

    def _communicate_gen(self) -> PQGen[None]:
        """Send what waits, but not before its Sync is among it."""
        if self._ends:
            yield from super()._communicate_gen()

    def _exit_gen(self) -> PQGen[None]:
        """Send everything and a Sync, and fetch all results."""
        self._ends = True
        try:
            self._enqueue_sync()
            yield from self._communicate_gen()
        finally:
            if self.result_queue:
                # What did not fit into the socket at once is still here.
                yield from send(self.pgconn)
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
