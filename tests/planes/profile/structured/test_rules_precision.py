"""The rules with the real model, on invented people of schemas that nothing was fitted on."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
PRECISION_MIN = 0.95
TIMEOUT_S = 600


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S)
def test_precision_holds_on_schemas_that_nothing_was_fitted_on() -> None:
    command = [sys.executable, "benchmarks/profiles.py", "--precision-min", str(PRECISION_MIN)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "precision" in done.stdout
