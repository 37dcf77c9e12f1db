"""The one place where the edges cross from the event loop into threads."""

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from loom.errors import Unavailable

THREADS_MAX = 64
WAITING_MAX = 512

Made = TypeVar("Made")


class Workers:
    """A bounded pool of threads with a bounded queue before it.

    Args:
        threads_max: how many calls run at once.
        waiting_max: how many more may wait for a thread; the next is refused.
    """

    def __init__(self, threads_max: int = THREADS_MAX, waiting_max: int = WAITING_MAX) -> None:
        self._limiter = CapacityLimiter(threads_max)
        self._inside_max = threads_max + waiting_max
        self.inside = 0

    async def run(self, work: Callable[[], Made]) -> Made:
        """What `work` returns, or raises; it runs to its end even when nobody waits for it any more.

        Raises:
            Unavailable: too many calls wait already; nothing was run.
        """
        if self.inside >= self._inside_max:
            raise Unavailable("too many calls at once; try again in a second", retry_after_s=1)
        self.inside += 1
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self.inside -= 1
