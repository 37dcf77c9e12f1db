"""The black-box contract tests, where their folder is there, run against a server of this checkout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from running import Server

pytestmark = pytest.mark.slow

FOLDER = Path(os.environ.get("CONTRACT", Path(__file__).parents[3] / "shared" / "contract"))


@pytest.mark.skipif(not (FOLDER / "test_contract.py").exists(), reason="the contract's folder is not here")
def test_the_contract_holds(server: Server, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / "test_contract.py")],
        env={**os.environ, "LOOM_URL": server.url, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stdout[-4000:]
