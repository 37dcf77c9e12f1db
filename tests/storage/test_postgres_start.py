"""What a start without the driver, or with the PostgreSQL of the package, does."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_kit import MIGRATIONS, ORG, add, count

from loom.storage.interface import StoreError
from loom.storage.postgres import PostgresSettings, opened_trial
from loom.storage.postgres.trial import TrialServer

WITHOUT = """
import sys
for name in ("psycopg", "psycopg_pool"):
    sys.modules[name] = None
from loom import compose
from loom.storage.interface import StoreError
from loom.storage.postgres import PostgresSettings, opened
try:
    opened("postgresql://u:secret@h/d", (), PostgresSettings())
except StoreError as error:
    print(error)
"""


def test_without_the_driver_the_rest_works_and_opening_says_what_to_install() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install '.[postgres]'" in run.stdout
    assert "secret" not in run.stdout


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder that root's stand-in may enter, with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="loom-pg-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_trial_store_is_there_again(short_folder: Path) -> None:
    first = opened_trial(short_folder / "postgres", MIGRATIONS, PostgresSettings())
    add(first, "kept")
    first.close()
    again = opened_trial(short_folder / "postgres", MIGRATIONS, PostgresSettings())
    assert count(again) == 1
    assert list(again.orgs()) == [ORG]
    again.close()
    with pytest.raises(StoreError, match="closed"):
        count(again)


def test_a_path_too_long_for_a_socket_is_told(short_folder: Path) -> None:
    with pytest.raises(StoreError, match="too long"):
        TrialServer(short_folder / ("x" * 100)).start()
