"""What the repository must and must not hold, beside code."""

import re
import subprocess
from pathlib import Path

import pytest

from loom import __version__, config

ROOT = Path(__file__).resolve().parents[2]
MACHINE_PATHS = re.compile(r"/(?:work|root|farm)/|(?:simple|registry|files)\.(?:py|npm|deb)[a-z]*\.")
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def tracked() -> list[Path]:
    """Files that git knows or would add; an unpacked archive without git has no such list."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git working tree")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_machine_is_named() -> None:
    own = Path(__file__)
    found: list[str] = []
    for path in tracked():
        if path == own:
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE_PATHS.finditer(text)]
    assert found == []


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    rows = config.table()
    assert [row["name"] for row in rows if f"| `{row['name']}` | `{row['variable']}` |" not in page] == []
    assert [row["name"] for row in rows if not row["meaning"].endswith(".")] == []


def test_links_between_pages_lead_somewhere() -> None:
    pages = [path for path in tracked() if path.suffix == ".md"]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_changelog_keeps_its_shape() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert text.startswith("# Changelog\n")
    releases = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert releases[0] == "[Unreleased]"
    for release in releases[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", release), release
    assert set(re.findall(r"^### (.+)$", text, flags=re.MULTILINE)) <= SECTIONS
    assert f"[{__version__}]" in text


def test_make_targets_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
    named = {
        match
        for page in ("README.md", "CONTRIBUTING.md", "STYLE.md", "ARCHITECTURE.md")
        for match in re.findall(r"`make ([a-z-]+)`", (ROOT / page).read_text("utf-8"))
    }
    assert named
    assert named <= targets
