"""One server, one browser, and somebody signed in, for all tests of a run."""

from collections.abc import Iterator
from pathlib import Path

import needed
import pytest
from browser_kit import CODE, Site, Watched, store
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from running import running

WAIT_MS = 60_000
"""How long what should be on a page may take to come; the library's own 5 seconds are not much for a busy machine."""

expect.set_options(timeout=WAIT_MS)

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home: Path = tmp_path_factory.mktemp("dashboard") / "home"
    with running(home, embedder="hashing", synchronous="NORMAL", code_folders=str(CODE)) as server:
        tokens: dict[str, str] = {}
        for role in ("admin", "writer", "viewer"):
            with server.client(tokens.get("admin")) as http:
                made = http.post("/v1/token.mint", json={"name": f"a {role}", "role": role})
                assert made.status_code == 200, made.text
                tokens[role] = made.json()["token"]
        with server.client(tokens["admin"]) as http:
            names = store(http)
        yield Site(server, names, tokens)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as made:
        yield made


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    found = needed.chromium()
    if found is None or not needed.AXE.exists():
        pytest.fail("run `make browser`, which gets Chromium and axe-core")
    made = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
    yield made
    made.close()


def opened(chromium: Browser, site: Site) -> Watched:
    """A page of a new visitor."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
    )
    context.set_default_timeout(WAIT_MS)
    return Watched(context.new_page(), site.server.url)


@pytest.fixture
def stranger(chromium: Browser, site: Site) -> Iterator[Watched]:
    """Somebody who is not signed in."""
    made = opened(chromium, site)
    yield made
    made.page.context.close()
    made.check()


@pytest.fixture(scope="session")
def signed_in(chromium: Browser, site: Site) -> Iterator[Watched]:
    """An admin, who came by a one-time link."""
    made = opened(chromium, site)
    made.go(site.link("admin"))
    made.page.wait_for_url(site.server.url + "/")
    yield made
    made.page.context.close()


@pytest.fixture
def admin(signed_in: Watched) -> Iterator[Watched]:
    """The same admin, with nothing gone wrong yet."""
    signed_in.trouble.clear()
    signed_in.expected.clear()
    signed_in.page.set_viewport_size({"width": 1280, "height": 900})
    signed_in.page.emulate_media(color_scheme="light")
    yield signed_in
    signed_in.check()
