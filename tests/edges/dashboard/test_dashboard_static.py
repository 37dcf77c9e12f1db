"""What browsers load: files of others are as they were published, and ours keep the policy."""

import hashlib
import json
import re
import sys
from subprocess import run

import pytest

from loom.edges.dashboard import rendering
from loom.edges.dashboard.comparing import GONE, LINES_MAX, NEW, SAME, SKIPPED, compared

STATIC = rendering.HERE / "static"
FORBIDDEN = re.compile(r"\son\w+=|\sstyle=|<script(?! src)|<style|\|\s*safe|javascript:|hx-on")
OWN = {"app.css", "app.js", "icon.svg", "vendored.json"}


def test_files_of_others_are_as_they_were_published() -> None:
    packages = json.loads((STATIC / "vendored.json").read_text("utf-8"))
    assert {(one["package"], one["version"]) for one in packages} == {("htmx.org", "2.0.11"), ("uplot", "1.6.32")}
    named: set[str] = set()
    for package in packages:
        assert (STATIC / package["licence_file"]).read_text("utf-8").strip()
        for file in package["files"]:
            named.add(file["file"])
            assert package["version"] in file["file"]
            assert hashlib.sha256((STATIC / file["file"]).read_bytes()).hexdigest() == file["sha256"]
    assert {path.name for path in STATIC.iterdir() if path.is_file()} == named | OWN


def test_our_own_files_ask_nobody_and_run_no_text() -> None:
    script = (STATIC / "app.js").read_text("utf-8")
    assert re.findall(r"innerHTML|outerHTML =|insertAdjacentHTML|document\.write|eval\(|new Function", script) == []
    style = (STATIC / "app.css").read_text("utf-8")
    assert re.findall(r"https?:|@import|url\(", style) == []
    for page in (rendering.HERE / "templates").glob("*.html"):
        text = page.read_text("utf-8")
        assert re.findall(r"\son\w+=|\sstyle=|<script(?! src)|<style|\|\s*safe|javascript:|hx-on", text) == [], (
            page.name
        )


def test_help_does_not_load_the_templates() -> None:
    program = "import sys\nfrom loom.edges.cli.main import main\nmain(['--help'], 'loom.compose')\n"
    done = run(
        [sys.executable, "-c", program + "print('jinja2' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("", "", []),
        ("a", "a", []),
        ("a", "b", [GONE, NEW]),
        ("", "a", [NEW]),
        ("\n".join("abcdefgh") + "\nx", "\n".join("abcdefgh") + "\ny", [SKIPPED, SAME, SAME, SAME, GONE, NEW]),
        ("x\n" + "\n".join("abcdefgh"), "y\n" + "\n".join("abcdefgh"), [GONE, NEW, SAME, SAME, SAME, SKIPPED]),
    ],
)
def test_two_texts_are_compared_by_line(old: str, new: str, kinds: list[str]) -> None:
    lines = compared(old, new)
    assert lines is not None
    assert [line.kind for line in lines] == kinds


def test_texts_that_would_take_too_long_are_not_compared() -> None:
    assert compared("x\n" * LINES_MAX, "y\n") is None
    assert compared("x" * 150_000, "y" * 150_000) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb", "a b"), ("x" * 81, "x" * 80 + "\u2026"), ("x" * 80, "x" * 80), (" " * 1000 + "x", "\u2026"), ("", "")],
)
def test_a_text_in_short_is_one_line(text: str, shown: str) -> None:
    assert rendering.short(text) == shown
