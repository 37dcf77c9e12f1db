"""What the README and the guides tell a reader to type, typed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from running import Server, running

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md")))
SNIPPET_TIMEOUT_S = 60


def snippets(language: str, holding: str) -> list[str]:
    found = [
        block
        for page in PAGES
        for block in re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    ]
    return [block for block in found if holding in block]


def typed(server: Server, command: list[str]) -> str:
    done = subprocess.run(
        [part.replace("http://127.0.0.1:7777", server.url) for part in command],
        capture_output=True,
        text=True,
        timeout=SNIPPET_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_snippets_do_what_the_pages_say(tmp_path: Path) -> None:
    shell, python = snippets("sh", "curl"), snippets("python", "loom.client")
    assert len(shell) == 1
    assert len(python) == 3
    with running(tmp_path) as server:
        assert "We drink green tea at four." in typed(server, ["bash", "-ec", shell[0]])
        for code in python:
            # The pages leave the URL out, since theirs is the default.
            told = re.sub(r"Loom\((?=agent)", 'Loom("http://127.0.0.1:7777", ', code)
            assert told != code
            assert "green tea" in typed(server, [sys.executable, "-c", told])


def test_links_lead_somewhere() -> None:
    links = [
        (page, link)
        for page in (*PAGES, *ROOT.glob("*.md"), *ROOT.glob("docs/reference/*.md"))
        for link in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
        if "://" not in link
    ]
    assert len(links) > 10
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []
