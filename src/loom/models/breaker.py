"""A circuit breaker: what fails is left alone for a while, and callers are told so at once.

Closed, calls go through. After `FAILURES_MAX` failures in a row a probe is sent: a call of our own, which no caller's
text has a part in. Only where that fails too, it opens: calls fail at once. The first caller after its rest has a probe
sent again, and fails at once as before; the probe closes it, or opens it for longer. Probes run in the background, one
at a time, and while a closed circuit is probed calls go through. See Nygard, Release It!, "Circuit Breaker".
"""

import logging
import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from threading import Lock, Thread
from typing import Final

FAILURES_MAX: Final = 3
"""Failures in a row after which a probe is sent."""

REST_S: Final = 5.0
REST_MAX_S: Final = 60.0
"""The first rest, and the longest: each is twice the one before. With jitter they last half of that at least."""

DOUBLINGS_MAX: Final = 6
PROBING_S: Final = 1.0
"""How long a caller waits who comes while it is probed, and how soon a probe that told nothing is repeated."""

Probe = Callable[[], Exception | None]
"""Ask what is called for a sign of life, with a bound of its own; why it gave none, None when it did."""

log = logging.getLogger(__name__)


class Blame(Enum):
    """Who is to blame for a call that failed, as far as its error tells."""

    SERVICE = "service"
    """What was called, perhaps: it did not answer, not in time, or said that it failed."""

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


def in_background(work: Callable[[], None]) -> None:
    """Do it in a thread of its own."""
    Thread(target=work, name="loom-probe", daemon=True).start()


class CircuitBreaker:
    """Closed or open, and probed or not. Safe for threads, and calls that it lets through run at once.

    Args:
        name: what is called, for messages.
        blame: who is to blame for an error; a probe's message must be safe to log.
        clock_s: a steady clock.
        jitter: a number between two.
        start: has a probe run.
    """

    def __init__(
        self,
        name: str,
        blame: Callable[[BaseException], Blame],
        clock_s: Callable[[], float] = time.monotonic,
        jitter: Callable[[float, float], float] = random.uniform,
        start: Callable[[Callable[[], None]], None] = in_background,
    ) -> None:
        self._name = name
        self._blame = blame
        self._clock_s = clock_s
        self._jitter = jitter
        self._start = start
        self._mutex = Lock()
        self._failures = 0
        self._openings = 0
        self._probing = False
        self._until_s = 0.0

    @property
    def is_open(self) -> bool:
        """Whether no call is made before a probe was answered."""
        return self._openings > 0

    @property
    def rest_s(self) -> float:
        """How long no call is made; 0 when it is closed, or the next caller has it probed."""
        with self._mutex:
            return self._rest_s()

    @contextmanager
    def call(self, probe: Probe) -> Generator[None]:
        """Make a call, in the block under `with`; where it raises, `probe` may be sent.

        Raises:
            CircuitOpen: none is made now.
        """
        self._need_closed(probe)
        try:
            yield
        except BaseException as error:
            self._count(self._blame(error), probe)
            raise
        self._count(None, probe)

    def _rest_s(self) -> float:
        if not self._openings:
            return 0.0
        return max(PROBING_S if self._probing else 0.0, self._until_s - self._clock_s())

    def _need_closed(self, probe: Probe) -> None:
        with self._mutex:
            if not self._openings:
                return
            rest_s = self._rest_s()
            begins = not rest_s
            self._probing |= begins
        if begins:
            self._send(probe)
        raise CircuitOpen(self._name, rest_s or PROBING_S)

    def _count(self, blame: Blame | None, probe: Probe) -> None:
        with self._mutex:
            if blame is Blame.CALLERS or self._openings:
                return
            self._failures = self._failures + 1 if blame is Blame.SERVICE else 0
            if self._failures < FAILURES_MAX or self._probing:
                return
            self._probing = True
        self._send(probe)

    def _send(self, probe: Probe) -> None:
        try:
            self._start(lambda: self._ask(probe))
        except RuntimeError as error:  # there is no thread to be had, which tells nothing
            self._settle(error)

    def _ask(self, probe: Probe) -> None:
        failure: Exception | None = RuntimeError("the probe broke")  # whatever it raises tells nothing
        try:
            failure = probe()
        finally:
            self._settle(failure)

    def _settle(self, failure: Exception | None) -> None:
        with self._mutex:
            self._probing = False
            if failure is None:
                if self._openings:
                    log.warning("%s answers again", self._name)
                self._failures = self._openings = 0
            elif self._blame(failure) is Blame.CALLERS:
                self._until_s = self._clock_s() + PROBING_S
            elif self._openings or self._failures >= FAILURES_MAX:  # else somebody was answered meanwhile
                self._open(failure)

    def _open(self, failure: Exception) -> None:
        longest_s = min(REST_S * 2 ** min(self._openings, DOUBLINGS_MAX), REST_MAX_S)
        rest_s = longest_s * self._jitter(0.5, 1.0)
        if not self._openings:
            log.error(
                "%s failed %d times in a row, and a text of our own failed too: %s. It is left alone for %.0f s, and"
                " each time that this fails again for about twice as long, up to %.0f s",
                self._name,
                self._failures,
                failure,
                rest_s,
                REST_MAX_S,
            )
        self._until_s = self._clock_s() + rest_s
        self._openings += 1
