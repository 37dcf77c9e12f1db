"""Looking up the addresses of a host's name, for a bounded time."""

import socket
import threading
from collections.abc import Sequence
from typing import Final

RESOLVE_TIMEOUT_S: Final = 10.0
"""How long looking a name up may take."""


def looked_up(name: str, port: int) -> Sequence[str]:
    """The addresses that the system knows of a name; OSError when it knows none in time."""
    found: list[str] = []

    def look() -> None:
        try:
            entries = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        found.extend(str(entry[4][0]) for entry in entries)

    # The system bounds it by its own settings alone, so a thread looks that nobody waits for any longer.
    looking = threading.Thread(target=look, name="loom-resolve", daemon=True)
    looking.start()
    looking.join(RESOLVE_TIMEOUT_S)
    if looking.is_alive() or not found:
        raise OSError(name)
    return list(dict.fromkeys(found))
