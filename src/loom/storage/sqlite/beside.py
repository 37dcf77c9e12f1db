"""Work of numbers alone that goes on beside a transaction, which meanwhile reads the file.

Both leave the interpreter's lock while they work, so on two processors a search by words and one by
meaning take as long as the longer of the two.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from loom.storage.indexes import Later, Scored

THREADS_MAX: Final = 4
"""Pieces of work that go on at once; more are done where they are asked for, and none waits in a queue."""


class Beside:
    """Threads that work for whoever asks. Safe for threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="loom-beside")
        self._free = threading.Semaphore(THREADS_MAX)

    def begin(self, work: Callable[[], Sequence[Scored]]) -> Later:
        """Begin `work`, or do it now when every thread is busy; call what comes back for what it gives."""
        if not self._free.acquire(blocking=False):
            return _kept(work())

        def done() -> Sequence[Scored]:
            try:
                return work()
            finally:
                self._free.release()

        try:
            return self._threads.submit(done).result
        except RuntimeError:  # the threads are shut down
            return _kept(done())

    def close(self) -> None:
        """Let what has begun end."""
        self._threads.shutdown()


def _kept(found: Sequence[Scored]) -> Later:
    return lambda: found
