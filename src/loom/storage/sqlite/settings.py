"""What can be set about the embedded engine."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SqliteSettings:
    """Bounds and choices, each with the value most installations keep.

    Attributes:
        synchronous: FULL survives a power cut; NORMAL survives a crash of the
            process only, and writes faster; so does OFF, which never waits for
            the disk: for a test's store.
        readers_max: read connections for each org's file.
        orgs_open_max: files kept open; one in use is never closed.
        busy_timeout_s: how long to wait for another process that writes.
        group_max: calls that may share one commit.
        vector_cache_bytes_max: memory for vectors, over all orgs.
        file_bytes_max: size no org's file may pass; None for no bound.
        clock_ns: nanoseconds since 1970.
    """

    synchronous: Literal["FULL", "NORMAL", "OFF"] = "FULL"
    readers_max: int = 4
    orgs_open_max: int = 64
    busy_timeout_s: float = 10.0
    group_max: int = 64
    vector_cache_bytes_max: int = 512 * MEBIBYTE
    file_bytes_max: int | None = None
    clock_ns: Callable[[], int] = time.time_ns
