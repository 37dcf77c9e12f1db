"""A circuit breaker: what failed several times in a row is left alone for a while, and callers are told so at once.

Closed, calls go through. After `FAILURES_MAX` failures in a row it opens: calls fail at once. When its rest is over it
is half open: one call goes through, the others still fail at once. That one closes it or opens it again, for longer.
See Nygard, Release It!, "Circuit Breaker".
"""

import logging
import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from threading import Lock
from typing import Final

FAILURES_MAX: Final = 3
"""Failures in a row that open it."""

REST_S: Final = 5.0
REST_MAX_S: Final = 60.0
"""The first rest, and the longest: each is twice the one before. With jitter they last half of that at least."""

DOUBLINGS_MAX: Final = 6
TRIAL_S: Final = 1.0
"""How long a caller is told to wait who comes while another one tries."""

log = logging.getLogger(__name__)


class Blame(Enum):
    """Who is to blame for a call that failed."""

    SERVICE = "service"
    """What was called: it did not answer, not in time, or as it does to everybody now."""

    INPUT = "input"
    """What it was called with; it works."""

    CALLERS = "callers"
    """Too many callers, or one who gave up: this says nothing of it."""


class CircuitOpen(Exception):
    """The call was not made.

    Attributes:
        rest_s: in how long the next one may be.
    """

    def __init__(self, name: str, rest_s: float) -> None:
        super().__init__(f"{name} failed several times in a row, and is asked again in {rest_s:.0f} s")
        self.rest_s = rest_s


class CircuitBreaker:
    """Closed, open or half open. Safe for threads, and calls that it lets through run at once.

    Args:
        name: what is called, for messages.
        blame: who is to blame for an error; its message must be safe to log where that is `Blame.SERVICE`.
        clock_s: a steady clock.
        jitter: a number between two.
    """

    def __init__(
        self,
        name: str,
        blame: Callable[[BaseException], Blame],
        clock_s: Callable[[], float] = time.monotonic,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._name = name
        self._blame = blame
        self._clock_s = clock_s
        self._jitter = jitter
        self._mutex = Lock()
        self._failures = 0
        self._openings = 0
        self._trying = False
        self._until_s = 0.0
        self._era = 0  # rises when it opens and when a trial begins, so that what began before is told apart

    @property
    def rest_s(self) -> float:
        """How long no call is made; 0 when the next one may be."""
        with self._mutex:
            return self._rest_s()

    @contextmanager
    def call(self) -> Generator[None]:
        """Make a call, in the block under `with`; what it raises decides.

        Raises:
            CircuitOpen: none is made now.
        """
        era = self._begin()
        try:
            yield
        except BaseException as error:
            self._end(era, self._blame(error), error)
            raise
        self._end(era, None, None)

    def _rest_s(self) -> float:
        if not self._openings:
            return 0.0
        return max(TRIAL_S if self._trying else 0.0, self._until_s - self._clock_s())

    def _begin(self) -> int:
        with self._mutex:
            if rest_s := self._rest_s():
                raise CircuitOpen(self._name, rest_s)
            if self._openings:
                self._trying = True
                self._era += 1
            return self._era

    def _end(self, era: int, blame: Blame | None, error: BaseException | None) -> None:
        with self._mutex:
            if era != self._era:
                return  # it began before the circuit opened, and what came of it is old news
            trial, self._trying = self._trying, False
            if blame is Blame.CALLERS:
                if trial:
                    self._until_s = self._clock_s() + TRIAL_S
                return
            if blame is Blame.SERVICE:
                self._failures += 1
                if trial or self._failures >= FAILURES_MAX:
                    self._open(error)
                return
            if self._openings:
                log.warning("%s answers again", self._name)
            self._failures = self._openings = 0

    def _open(self, error: BaseException | None) -> None:
        if not self._openings:
            log.error(
                "%s failed %d times in a row, the last time since %s; from now on it is tried at most every %.0f s",
                self._name,
                self._failures,
                error,
                REST_MAX_S,
            )
        rest_s = min(REST_S * 2 ** min(self._openings, DOUBLINGS_MAX), REST_MAX_S)
        self._until_s = self._clock_s() + rest_s * self._jitter(0.5, 1.0)
        self._openings += 1
        self._era += 1
