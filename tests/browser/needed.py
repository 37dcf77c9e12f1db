"""Gets what the tests in a real browser need, beside Python packages: Chromium, and axe-core from npm.

    python tests/browser/needed.py

Chromium is the system's own, installed with apt where that is possible. axe-core comes by `npm pack`, of one version
whose hash is known, into a folder that git does not keep.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".browser"
AXE_VERSION = "4.10.3"
AXE_SHA256 = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
AXE = FOLDER / f"axe-{AXE_VERSION}.min.js"
AXE_MEMBER = "package/axe.min.js"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 600


def chromium() -> str | None:
    """The path of the system's Chromium, or None."""
    return next((found for name in CHROMIUM_NAMES if (found := shutil.which(name))), None)


def main() -> int:
    """Get what is missing; 1 when it cannot be had."""
    if chromium() is None and not install_chromium():
        sys.stderr.write(
            "no Chromium here; install it with your system's packages (Debian: apt-get install chromium)\n"
        )
        return 1
    if not AXE.exists():
        get_axe()
    return 0


def install_chromium() -> bool:
    """Install Debian's Chromium, as root on a system with apt; whether there is one now."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
        subprocess.run(command, check=False, timeout=TIMEOUT_S, stdout=subprocess.DEVNULL)
    return chromium() is not None


def get_axe() -> None:
    """Fetch axe-core, and keep it when its hash is the known one."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", "--silent", f"axe-core@{AXE_VERSION}"],
            cwd=folder, check=True, timeout=TIMEOUT_S, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        (package,) = Path(folder).glob("*.tgz")
        with tarfile.open(fileobj=io.BytesIO(package.read_bytes())) as archive:
            member = archive.extractfile(AXE_MEMBER)
            content = member.read() if member else b""
    found = hashlib.sha256(content).hexdigest()
    if found != AXE_SHA256:
        raise SystemExit(f"axe-core {AXE_VERSION} has the hash {found}, not the known one; it is not used")
    AXE.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
