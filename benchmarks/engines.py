"""The engines that the speed benchmark runs on, each with its store in the benchmark's home."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from loom import config
from loom.storage.postgres.trial import TrialServer

SQLITE, POSTGRES = "sqlite", "postgres"
ENGINES: Mapping[str, tuple[str, ...]] = {SQLITE: (SQLITE,), POSTGRES: (POSTGRES,), "both": (SQLITE, POSTGRES)}
"""What `--engine` may say."""

SERVER_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "max_connections": "100"}
"""Of the trial PostgreSQL. Durability stays as it is: every commit waits for the disk, as the embedded store's does."""


@dataclass(frozen=True)
class Engine:
    """A store to measure.

    Attributes:
        name: `sqlite` or `postgres`.
        home: the home folder of its servers.
        database_url: where its PostgreSQL answers; empty for SQLite.
    """

    name: str
    home: Path
    database_url: str

    @property
    def settings(self) -> config.Settings:
        """What opens the store in this process."""
        changes = {"home": self.home, "database_url": SecretStr(self.database_url)}
        return config.load().model_copy(update=changes)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a server on the store is started with."""
        return {"database_url": self.database_url} if self.database_url else {}


@contextmanager
def opened(name: str, home: Path) -> Iterator[Engine]:
    """An engine whose store is in `home`; PostgreSQL, the one that comes as a wheel, runs until the end."""
    own = home / name
    own.mkdir(parents=True, exist_ok=True)
    if name == SQLITE:
        yield Engine(name, own, "")
        return
    if os.geteuid() == 0:
        # Root starts PostgreSQL as another user, who must pass these folders.
        for folder in (home, own):
            folder.chmod(0o711)
    server = TrialServer(own / "server", SERVER_SETTINGS)
    server.start()
    try:
        yield Engine(name, own, server.url())
    finally:
        server.stop()
