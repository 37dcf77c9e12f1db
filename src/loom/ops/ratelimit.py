"""How many calls one caller may make, by kind: counted by one process, or by all servers of a store together."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from loom.errors import RateLimited
from loom.ops.spec import Kind
from loom.storage.interface import Counted, SharedCounts

MINUTE_US = 60 * 1_000_000
SLICES = 20
"""A server takes at most this part of a minute's calls at once, ..."""

FIRST_SLICE = 4
"""... begins with so few, ..."""

PARTS_LEFT = 4
"""... and takes at most this part of what is left, so that the last calls are not held where nobody makes them."""

REFUSED_US = 1_000_000
"""How long a server that was given nothing does not ask again."""

HELD_MAX = 10_000
"""Callers whose slices a server keeps; those of the one that was away for longest are given up."""


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


@dataclass
class _Held:
    """What a server may still let pass of one caller's calls of one kind without asking.

    Attributes:
        minute: of which minute.
        left: so many calls.
        wanted: how many to ask for next.
        asks_from_us: when to ask next.
        room_from_us: from when a call passes, as far as was known when it was asked.
        mutex: held while the store is asked, so that the caller's calls at the same time ask once.
    """

    minute: int = 0
    left: int = 0
    wanted: int = FIRST_SLICE
    asks_from_us: int = 0
    room_from_us: int = 0
    mutex: threading.Lock = field(default_factory=threading.Lock)


class SharedPerMinute:
    """So many reads and so many writes a minute for each token over every server of a store.

    The store counts slices, not calls: a server takes some calls of a minute at a time and lets them pass by itself.
    What it did not need, it gives back when the minute is over. Together the servers never let pass more
    than the limit; what one holds and does not use, the others lack until then.

    Args:
        counts: the store's.
        reads_per_minute: the limit of reads.
        writes_per_minute: the limit of writes.
        clock_us: now, in microseconds UTC; the servers' clocks are about the same.
    """

    def __init__(
        self, counts: SharedCounts, reads_per_minute: int, writes_per_minute: int, clock_us: Callable[[], int]
    ) -> None:
        self._counts = counts
        self._limits = {"read": reads_per_minute, "write": writes_per_minute}
        self._clock_us = clock_us
        self._mutex = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], _Held] = OrderedDict()

    def take(self, principal: str, kind: Kind) -> None:
        """Count one call; RateLimited with the seconds to wait."""
        group = "read" if kind is Kind.READ else "write"
        held = self._held(principal, group)
        with held.mutex:
            now_us = self._clock_us()
            minute = now_us // MINUTE_US
            if held.minute == minute and held.left > 0:
                held.left -= 1
                return
            limit = self._limits[group]
            if now_us >= held.asks_from_us and self._asked(held, f"{group} {principal}", limit, now_us):
                return
            wait_s = max(1, math.ceil((held.room_from_us - now_us) / 1_000_000))
        raise RateLimited(f"over {limit} {group} calls a minute; wait {wait_s} s", retry_after_s=wait_s)

    def _asked(self, held: _Held, name: str, limit: int, now_us: int) -> bool:
        """Take a slice and count one call of it; False when there is none."""
        minute, since_us = divmod(now_us, MINUTE_US)
        ahead = 1 - since_us / MINUTE_US
        if held.minute != minute:
            held.wanted = max(FIRST_SLICE, held.wanted // PARTS_LEFT)
        slice_max = max(1, limit // SLICES)

        def amount(past: int, present: int) -> int:
            return slice_of(math.floor(limit - past * ahead - present), min(held.wanted, slice_max))

        counted = self._counts.add(name, minute, amount, (held.minute, held.left))
        held.minute, held.left = minute, counted.added
        if counted.added:
            held.left -= 1
            held.wanted = min(held.wanted * 2, slice_max)
            return True
        held.asks_from_us = now_us + REFUSED_US
        held.room_from_us = now_us + round(seconds_to_room(counted, limit, ahead) * 1_000_000)
        return False

    def _held(self, principal: str, group: str) -> _Held:
        with self._mutex:
            held = self._kept.setdefault((principal, group), _Held())
            self._kept.move_to_end((principal, group))
            if len(self._kept) > HELD_MAX:
                self._kept.popitem(last=False)
            return held


def slice_of(room: int, wanted: int) -> int:
    """How many of the calls that are left a server takes; 0 when none is left."""
    return max(1, min(wanted, room // PARTS_LEFT)) if room > 0 else 0


def seconds_to_room(counted: Counted, limit: int, ahead: float) -> float:
    """After how long a call passes that does not now, when none is counted meanwhile.

    The past minute counts by the part of it that lies within the last 60 seconds, which `ahead` is now.
    """
    if counted.present < limit:
        return 60 * (ahead - (limit - counted.present - 1) / counted.past)
    return 60 * (ahead + 1 - (limit - 1) / counted.present)
