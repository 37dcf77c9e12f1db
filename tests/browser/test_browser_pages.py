"""Every page in a real browser: nothing on the console, nothing asked of others, readable, and open to everybody."""

from typing import Any

import pytest
from browser_kit import HOSTILE, PROBE, SHOTS, Site, Watched
from needed import AXE

pytestmark = pytest.mark.browser

PAGES = {
    "overview": "/",
    "search": "/search?q=tea&explain=1",
    "memories": "/memories",
    "memory": "/memories/one?key=team/tea&by=claude-code",
    "edit": "/memories/edit?key=team/tea&by=claude-code",
    "profile": "/profile",
    "section": "/profile/section?label=persona&by=claude-code",
    "conversations": "/conversations",
    "conversation": "/conversations/one?session=release",
    "knowledge": "/knowledge?q=tea",
    "document": "/knowledge/document?id={document}&line=5&to=7",
    "tracker": "/tracker?ns=bugs",
    "issue": "/tracker/issue?ns=bugs&number=12&with=15",
    "code": "/code?ns=app-code&q=session",
    "symbol": "/code/symbol?ns=app-code&name=Sessions.open",
    "file": "/code/file?ns=app-code&path=tokens.py&line=40",
    "structured": "/profile/structured?ns=people",
    "structured-user": "/profile/structured/user?ns=people&about=ada",
    "access": "/access",
    "audit": "/access?at=hostile#audit",
    "connect": "/connect",
    "empty": "/memories?ns=nothing",
    "empty-profile": "/profile?ns=nothing",
}
SERIOUS = ("serious", "critical")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], "resultTypes": ["violations"]}
OF_LOOKS = {
    "runOnly": {"type": "rule", "values": ["color-contrast", "scrollable-region-focusable", "link-in-text-block"]},
    "resultTypes": ["violations"],
}
"""What may differ in another width or colour; the rest is of the document, and was looked at."""


def violations(watched: Watched, rules: dict[str, Any]) -> list[tuple[str, str]]:
    """What axe-core finds that keeps somebody from using the page."""
    if not watched.page.evaluate("'axe' in window"):
        watched.page.evaluate(AXE.read_text("utf-8"))
    found: dict[str, Any] = watched.page.evaluate("rules => axe.run(document, rules)", rules)
    return [
        (one["id"], node["html"][:200])
        for one in found["violations"]
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]


def is_too_wide(watched: Watched) -> bool:
    return bool(watched.page.evaluate("document.documentElement.scrollWidth > innerWidth"))


def shoot(watched: Watched, name: str, *, whole: bool = True) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    watched.page.screenshot(path=str(SHOTS / f"{name}.png"), full_page=whole)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_in_every_width_and_colour(admin: Watched, site: Site, name: str) -> None:
    page = admin.page
    admin.go(PAGES[name].format(**site.names))
    page.locator("h1").first.wait_for()
    assert violations(admin, RULES) == []
    assert not is_too_wide(admin)
    shoot(admin, f"{name}-1280-light")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 780})
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert violations(admin, OF_LOOKS) == []
    assert not is_too_wide(admin)
    shoot(admin, f"{name}-360-dark")
    page.set_viewport_size({"width": 2000, "height": 1100})
    page.emulate_media(color_scheme="light")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert not is_too_wide(admin)
    shoot(admin, f"{name}-2000-light", whole=False)


HOSTILE_PAGES = (
    "/", "/memories", "/profile", "/conversations", "/knowledge", "/tracker", "/code", "/access",
    f"/access?at={HOSTILE}&op=memory.delete",
    "/search?q=script&explain=1", "/tracker/issue?number=1&with=2",
)  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE_PAGES)
def test_stored_text_is_never_run(admin: Watched, path: str) -> None:
    admin.go(f"{path}{'&' if '?' in path else '?'}ns={HOSTILE}")
    assert admin.page.locator("img[src=x]").count() == 0
    assert admin.page.locator("a[href^='javascript:']").count() == 0
    links = admin.page.locator("main td.main a, main .hit h3 a, main .sections h2 a, main .feed a")
    if not path.startswith("/access") and links.count():
        assert "49" not in links.first.inner_text(), "a stored text is no template"
        links.first.click()
        admin.page.wait_for_load_state()
        assert admin.page.locator("img[src=x]").count() == 0
        assert "<script>" in admin.page.locator("main").inner_text()


def test_a_search_for_a_probe_gives_it_back_as_text(admin: Watched) -> None:
    admin.go(f"/search?ns={HOSTILE}")
    admin.page.get_by_label("What to look for").fill(PROBE)
    admin.page.keyboard.press("Enter")
    admin.page.wait_for_url("**/search?**q=**")
    assert admin.page.get_by_label("What to look for").input_value() == PROBE


def test_a_page_can_be_used_by_keyboard(admin: Watched) -> None:
    admin.go("/")
    admin.page.keyboard.press("Tab")
    focused = "document.activeElement"
    assert admin.page.evaluate(f"{focused}.textContent") == "Skip to content"
    assert admin.page.evaluate(f"{focused}.getBoundingClientRect().top >= 0")
    admin.page.keyboard.press("Enter")
    assert admin.page.evaluate(f"{focused}.id") == "main"
    admin.page.keyboard.press("Tab")
    assert admin.page.evaluate(f"getComputedStyle({focused}).outlineStyle") == "solid"


def test_charts_are_drawn_under_the_policy(admin: Watched) -> None:
    admin.go("/")
    admin.page.locator(".chart canvas").first.wait_for()
    assert admin.page.locator(".chart canvas").count() == 2
    colours = admin.page.evaluate(
        "() => { const one = document.querySelector('.chart canvas'); const all = one.getContext('2d')"
        ".getImageData(0, 0, one.width, one.height).data; return new Set(all).size }"
    )
    assert colours > 8
