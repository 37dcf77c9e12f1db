"""Threads that run a model, with bounded room in front of them."""

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Final, TypeVar

from loom.models.breaker import Blame
from loom.models.interface import EmbedderFailed
from loom.models.sources import SourceUnusable
from loom.storage.indexes import Vector

WORKERS: Final = 2
QUERIES_WAITING_MAX: Final = 64
PASSAGES_WAITING_MAX: Final = 256
CLOSED: Final = "the embedder is closed"
BUSY: Final = "the embedder is busy: no place in its queue became free in time"

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Lane:
    """Workers and the places in front of them; a place is held until its text is done."""

    workers: ThreadPoolExecutor
    places: BoundedSemaphore

    @classmethod
    def of(cls, name: str, waiting_max: int) -> "Lane":
        """A lane of `WORKERS` threads, before which so many texts may wait."""
        return cls(ThreadPoolExecutor(WORKERS, thread_name_prefix=name), BoundedSemaphore(waiting_max))

    def submit(self, embed: Callable[[str], Vector], text: str, deadline: float) -> Future[Vector]:
        """Have a text embedded.

        Raises:
            EmbedderFailed: no place became free before `deadline`, by the steady clock, or the lane is closed.
        """
        if not self.places.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise EmbedderFailed(BUSY, blame=Blame.CALLERS)
        try:
            future = self.workers.submit(embed, text)
        except RuntimeError:  # what a pool that was shut down raises
            self.places.release()
            raise EmbedderFailed(CLOSED, blame=Blame.CALLERS) from None
        future.add_done_callback(lambda _: self.places.release())
        return future

    def close(self) -> None:
        """Stop the threads; texts that wait are dropped."""
        self.workers.shutdown(wait=False, cancel_futures=True)


def result(future: Future[Done], deadline: float, late: Blame = Blame.SERVICE) -> Done:
    """What `future` gives before `deadline`, by the steady clock.

    `late` is to blame when that is nothing. A turn that never came is no reason to blame the callers: they look like a
    crowd also where every thread is stuck. A probe, which has threads of its own, tells these two apart.

    Raises:
        EmbedderFailed: any failure; it is safe to show.
    """
    try:
        error = future.exception(timeout=max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        raise EmbedderFailed("the embedder was not done in time", blame=late) from None
    except CancelledError:
        raise EmbedderFailed(CLOSED, blame=Blame.CALLERS) from None
    if isinstance(error, EmbedderFailed | SourceUnusable):
        blame = error.blame if isinstance(error, EmbedderFailed) else Blame.SERVICE
        raise EmbedderFailed(str(error), blame=blame) from None
    if error is not None:  # its message may hold the text, so only its name is told
        raise EmbedderFailed(f"the embedder failed ({type(error).__name__})") from None
    return future.result()
