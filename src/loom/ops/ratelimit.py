"""How many calls one caller may make, by kind."""

import time
from typing import Protocol

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from loom.errors import RateLimited
from loom.ops.spec import Kind


class RateLimit(Protocol):
    """Counts a call; refuses it when there were too many."""

    def take(self, principal: str, kind: Kind) -> None:
        """Count one call of `principal`; RateLimited when it is one too many."""
        ...


class PerMinute:
    """So many reads and so many writes a minute for each token, over a sliding window."""

    def __init__(self, reads_per_minute: int, writes_per_minute: int) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._reads = RateLimitItemPerMinute(reads_per_minute)
        self._writes = RateLimitItemPerMinute(writes_per_minute)

    def take(self, principal: str, kind: Kind) -> None:
        """Count one call; RateLimited with the seconds to wait."""
        item, group = (self._reads, "read") if kind is Kind.READ else (self._writes, "write")
        if self._limiter.hit(item, group, principal):
            return
        reset_s = self._limiter.get_window_stats(item, group, principal).reset_time - time.time()
        wait_s = max(1, round(reset_s))
        raise RateLimited(f"over {item.amount} {group} calls a minute; wait {wait_s} s", retry_after_s=wait_s)
