"""Jobs that a worker had to itself when it was killed."""

from pathlib import Path

from loom import compose
from loom.config import Settings


def end_leases(home: Path, org: str) -> int:
    """Let the minute be over for which a worker that is gone has its jobs to itself; how many jobs that was."""
    store = compose.database(Settings(home=home))
    try:
        with store.transaction(org, write=True) as tx:
            return tx.run("UPDATE job SET leased_until = 1 WHERE org = :org AND leased_until > 1")
    finally:
        store.close()
