# ruff: noqa: INP001
"""Writes everything that is generated: the reference pages and the client's typed methods.

python docs/generate.py           write
python docs/generate.py --check   change nothing; exit 1 and name what is not up to date
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from loom import compose, config
from loom.edges import reference
from loom.edges.cli.help import help_texts
from loom.edges.client import generate

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = Path("docs/reference")
CLIENT = Path("src/loom/edges/client/planes")


def wanted() -> dict[Path, str]:
    """Every generated file with its content, by path from the repository's root."""
    registry = compose.registry()
    pages = reference.pages(registry, config.table(), help_texts)
    written = {REFERENCE / name: text for name, text in pages.items()}
    return written | {CLIENT / name: text for name, text in formatted(generate.files(registry)).items()}


def formatted(files: Mapping[str, str]) -> dict[str, str]:
    """Python files, sorted and formatted as the repository's own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text, "utf-8")
        ruff = [sys.executable, "-m", "ruff"]
        # Named, because a module that is written for the first time is not found in `src` yet.
        first_party = 'lint.isort.known-first-party = ["loom"]'
        settings = ["--config", str(ROOT / "pyproject.toml"), "--config", first_party, "--quiet", folder]
        subprocess.run([*ruff, "check", "--select", "I", "--fix", *settings], check=True)  # noqa: S603  # our own tool
        subprocess.run([*ruff, "format", *settings], check=True)  # noqa: S603  # our own tool
        return {name: (Path(folder) / name).read_text("utf-8") for name in files}


def stale(files: Mapping[Path, str]) -> list[Path]:
    """Paths whose content differs, is missing, or should not be there."""
    there = {
        path.relative_to(ROOT)
        for folder, pattern in ((REFERENCE, "*.md"), (CLIENT, "*.py"))
        for path in (ROOT / folder).glob(pattern)
    }
    changed = {path for path, text in files.items() if path not in there or (ROOT / path).read_text("utf-8") != text}
    return sorted(changed | (there - set(files)))


def main() -> int:
    """Write or check; the exit code."""
    files = wanted()
    found = stale(files)
    if "--check" in sys.argv[1:]:
        for path in found:
            print(f"{path} is not up to date; run `make docs`")  # noqa: T201  # a script
        return 1 if found else 0
    for path in found:
        if path in files:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(files[path], "utf-8")
        else:
            (ROOT / path).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
