"""Work that may be lost in a crash and must not slow an answer: a bounded queue in memory."""

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Mapping

from loom.canonical import Json
from loom.jobs.handlers import Bench, LateHandler
from loom.storage.interface import Raced, StoreError

WAITING_MAX = 10_000
"""Payloads that may wait, over all orgs; what comes then is dropped."""

TOGETHER_MAX = 1_000
"""Payloads handed to a handler at once."""

FLUSH_WAIT_S = 5.0
"""How long a flush waits for another one to end."""

log = logging.getLogger(__name__)


class LateQueue:
    """Keeps payloads until `flush` hands them to the handlers, an org at a time.

    Implements `ops.spec.Later`. The worker flushes every second.

    Args:
        bench: what handlers work with.
        handlers: by the name under which payloads are queued.
        waiting_max: payloads that may wait.
    """

    def __init__(self, bench: Bench, handlers: Mapping[str, LateHandler], waiting_max: int = WAITING_MAX) -> None:
        self._bench = bench
        self._handlers = dict(handlers)
        self._waiting_max = waiting_max
        self._mutex = threading.Lock()
        self._flushing = threading.Lock()
        self._waiting: dict[str, deque[tuple[str, Mapping[str, Json]]]] = defaultdict(deque)
        self._count = 0

    def __call__(self, name: str, org: str, payload: Mapping[str, Json]) -> None:
        """Queue `payload` for the handler `name`; never blocks, drops when the queue is full.

        Raises:
            KeyError: there is no such handler.
        """
        if name not in self._handlers:
            raise KeyError(name)
        with self._mutex:
            if self._count < self._waiting_max:
                self._waiting[org].append((name, payload))
                self._count += 1

    def flush(self, org: str) -> None:
        """Hand on what is queued for `org` now; what a failing store cannot take is dropped.

        Waits for a flush that is under way, so that what it took is in the store too.
        """
        if not self._flushing.acquire(timeout=FLUSH_WAIT_S):
            return
        try:
            for name, payloads in self._taken(org).items():
                for start in range(0, len(payloads), TOGETHER_MAX):
                    self._hand_on(name, org, payloads[start : start + TOGETHER_MAX])
        finally:
            self._flushing.release()

    def flush_all(self) -> None:
        """Hand on everything."""
        with self._mutex:
            orgs = list(self._waiting)
        for org in orgs:
            self.flush(org)

    def _taken(self, org: str) -> Mapping[str, list[Mapping[str, Json]]]:
        with self._mutex:
            waiting = self._waiting.pop(org, deque[tuple[str, Mapping[str, Json]]]())
            self._count -= len(waiting)
        by_name: dict[str, list[Mapping[str, Json]]] = defaultdict(list)
        for name, payload in waiting:
            by_name[name].append(payload)
        return by_name

    def _hand_on(self, name: str, org: str, payloads: list[Mapping[str, Json]]) -> None:
        try:
            self._handlers[name](self._bench, org, payloads)
        except (StoreError, Raced) as error:
            log.warning("%s: %d notes were lost (%s)", name, len(payloads), type(error).__name__)
