"""What a process that serves sets once, for the whole of its interpreter."""

import gc

from threadpoolctl import threadpool_limits

COLLECT_AFTER = (50_000, 20, 20)
"""New objects, then collections of the young, then of the middle-aged, after which the next generation is looked
through. A search makes some ten thousand objects and no cycles."""


def settle() -> None:
    """Leave the processors to the calls, once everything is imported and built.

    The legs of a search run side by side, so the library that multiplies their matrices gets one thread a call: its
    own threads wait for each other by spinning, which took a third of all processor time (six full planes on two
    cores: 135 ms of it a search, 90 without). What is there now stays until the end, so the garbage collector need
    not look through it again and again.
    """
    threadpool_limits(limits=1, user_api="blas")
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
