"""What people come for, from the first click to the end."""

from pathlib import Path

import pytest
from browser_kit import HOSTILE, Site, Watched
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_a_stranger_pastes_a_token_and_leaves(stranger: Watched, site: Site) -> None:
    page = stranger.page
    stranger.expected.append("401")
    stranger.go("/memories?ns=local")
    expect(page).to_have_url(f"{site.server.url}/sign-in?next=%2Fmemories%3Fns%3Dlocal")
    page.get_by_label("Or paste a token").fill("loom_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Unauthenticated")
    page.get_by_label("Or paste a token").fill(site.tokens["viewer"])
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{site.server.url}/memories?ns=local")
    expect(page.get_by_role("heading", name="Memories")).to_be_visible()
    expect(page.get_by_role("link", name="New memory")).to_have_count(0)
    cookies = page.context.cookies()
    assert [(one["httpOnly"], one["sameSite"]) for one in cookies] == [(True, "Strict")]  # pyright: ignore[reportTypedDictNotRequiredAccess]
    assert page.evaluate("document.cookie") == ""
    forged = page.evaluate(
        "fetch('/memories/edit', {method: 'POST', body: new URLSearchParams({key: 'forged', value: 'x',"
        " csrf: document.querySelector('[name=csrf]').value})}).then(answer => answer.status)"
    )
    stranger.expected.append("403")
    assert forged == 403
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{site.server.url}/sign-in")
    stranger.go("/")
    expect(page).to_have_url(f"{site.server.url}/sign-in")


def test_a_link_works_once(stranger: Watched, site: Site) -> None:
    path = site.link("writer")
    stranger.expected.append("401")
    stranger.go(path)
    expect(stranger.page).to_have_url(f"{site.server.url}/")
    stranger.page.get_by_role("button", name="Sign out").click()
    stranger.go(path)
    expect(stranger.page.get_by_role("alert")).to_contain_text("used before")


def test_a_memory_is_found_changed_compared_and_guarded(admin: Watched) -> None:
    page = admin.page
    admin.go("/memories")
    page.get_by_label("Holds").fill("black tea")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="team/tea").click()
    expect(page.get_by_text("Bring a cup.").first).to_be_visible()
    page.get_by_role("link", name="Edit").click()
    page.locator("[name=value]").fill("We drink white tea at six.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    assert "done=" not in page.url
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".diff .new").first).to_contain_text("white tea")
    expect(page.locator(".diff .gone").first).to_contain_text("black tea")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_text("pinned", exact=True)).to_be_visible()
    page.get_by_role("button", name="Unpin").click()
    page.get_by_label("Forget it after days").fill("3")
    page.get_by_role("button", name="Set expiry").click()
    expect(page.locator("dd time").last).to_contain_text("in 2 d")
    page.get_by_label("Why").fill("agreed")
    page.get_by_role("button", name="Lock", exact=True).click()
    expect(page.get_by_text("no delete", exact=True)).to_be_visible()
    page.locator("summary", has_text="Delete").click()
    admin.expected.append("423")
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("alert")).to_contain_text("Locked")
    page.get_by_role("button", name="Unlock").click()
    page.locator("summary", has_text="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("tombstoned").first).to_be_visible()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("status")).to_have_text("Restored.")


def test_a_section_shows_its_room_and_a_conflict_both_texts(admin: Watched, site: Site) -> None:
    page = admin.page
    admin.go("/profile")
    page.get_by_role("link", name="persona").click()
    page.locator("[name=value]").fill('Ada "quoted"\n\u00e9\U0001f375')
    expect(page.locator("[data-shows-length]")).to_contain_text("20 characters, room for 880 more")
    page.get_by_label("Cap, in characters").fill("10")
    expect(page.locator("[data-shows-length]")).to_contain_text("10 too many")
    page.get_by_label("Cap, in characters").fill("900")
    theirs = {"label": "persona", "value": "Written meanwhile.", "agent": "claude-code", "namespace": "local"}
    with site.server.client(site.tokens["writer"]) as http:
        assert http.post("/v1/profile.set", json=theirs).status_code == 200
    admin.expected.append("409")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Somebody wrote it meanwhile")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Written meanwhile.")
    page.get_by_role("button", name="Save mine over it").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    with site.server.client(site.tokens["writer"]) as http:
        asked = {"memory_key": "persona", "agent": "claude-code", "namespace": "local"}
        kept = http.post("/v1/memory.get", json=asked).json()
    assert kept["value"] == 'Ada "quoted"\n\u00e9\U0001f375'
    assert kept["value_length"] == 20


def test_files_are_dropped_and_come_in_with_progress(admin: Watched, tmp_path: Path) -> None:
    page = admin.page
    large = tmp_path / "large <b>guide.md"
    large.write_text("# Guide\n\n" + "Tea is served at four. " * 120_000)
    small = tmp_path / "small.txt"
    small.write_text("A short note on biscuits.")
    admin.go("/knowledge")
    page.locator("[data-files]").set_input_files([large, small])
    lines = page.locator("[data-uploads] li")
    expect(lines).to_have_count(2)
    expect(lines.nth(1)).to_contain_text("added, revision 1")
    expect(lines.first).to_contain_text("large <b>guide.md")
    expect(page.locator("#documents")).to_contain_text("small.txt")
    page.locator("#documents").get_by_role("link", name="small").click()
    expect(page.locator(".lines")).to_contain_text("biscuits")


def test_a_dropped_file_comes_in(admin: Watched) -> None:
    page = admin.page
    admin.go("/knowledge")
    dropped = page.evaluate_handle(
        "() => { const made = new DataTransfer();"
        " made.items.add(new File(['Dropped tea.'], 'dropped.md')); return made }"
    )
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": dropped})
    expect(page.locator("[data-uploads] li")).to_contain_text("added, revision 1")
    expect(page.locator("#documents")).to_contain_text("dropped.md")


def test_a_token_is_minted_shown_once_and_revoked(admin: Watched, site: Site) -> None:
    page = admin.page
    admin.go("/access")
    page.locator("summary", has_text="New token").click()
    form = page.locator("form", has=page.get_by_role("button", name="Mint"))
    form.get_by_label("Name", exact=True).fill("a visitor")
    form.get_by_label("Role").select_option("viewer")
    page.get_by_role("button", name="Mint").click()
    token = page.locator(".snippet pre").inner_text()
    with site.server.client(token) as http:
        assert http.post("/v1/namespace.list", json={}).status_code == 200
    page.get_by_role("link", name="Done").click()
    assert token not in page.content()
    row = page.locator("tr", has_text="a visitor")
    row.locator("summary").click()
    row.get_by_role("button", name="End it now").click()
    expect(page.locator("tr", has_text="a visitor")).to_contain_text("revoked")
    with site.server.client(token) as http:
        assert http.post("/v1/namespace.list", json={}).status_code == 401


def test_the_audit_is_read_page_by_page_and_filtered(admin: Watched, site: Site) -> None:
    page = admin.page
    admin.go("/access")
    rows = page.locator("#audit tbody tr")
    expect(rows).to_have_count(50)
    page.locator("#audit").get_by_role("link", name="Next page").click()
    expect(page.locator("#audit").get_by_role("link", name="First page")).to_be_visible()
    expect(rows.first).to_be_in_viewport()
    with site.server.client(site.tokens["admin"]) as http:
        made = http.post("/v1/token.mint", json={"name": "ended soon"}).json()
        http.post("/v1/token.revoke", json={"token_id": made["token_id"]})
    admin.go("/access")
    page.get_by_label("Operation").fill("token.revoke")
    page.get_by_role("button", name="Filter").click()
    expect(rows.first).to_contain_text("token.revoke")
    assert all("token.revoke" in text for text in rows.all_inner_texts())
    page.get_by_label("In namespace").fill(HOSTILE)
    page.get_by_label("Operation").fill("memory.delete")
    page.get_by_role("button", name="Filter").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("gone <script>alert('loom')</script>")
    page.set_viewport_size({"width": 360, "height": 780})
    cell = rows.locator("td[data-label=About]")
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") == '"About"', "a card says what is what"
    assert cell.bounding_box()["width"] <= 360  # pyright: ignore[reportOptionalSubscript]


def test_the_connection_is_checked_as_an_agent_does(admin: Watched, site: Site) -> None:
    page = admin.page
    admin.go("/connect")
    admin.expected.append("401")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("[data-check-says]")).to_contain_text("It is not reached")
    page.get_by_label("Token, not kept").fill(site.tokens["viewer"])
    page.get_by_role("button", name="Check").click()
    expect(page.locator("[data-check-says]")).to_contain_text("It is reached: ")
    expect(page.locator("[data-check-says]")).to_contain_text("tools")


def test_conversations_issues_and_code_lead_on(admin: Watched) -> None:
    page = admin.page
    admin.go("/conversations")
    page.get_by_role("link", name="Planning the release").click()
    page.get_by_label("Search in this conversation").fill("deploy")
    page.keyboard.press("Enter")
    expect(page.locator(".hit").first).to_contain_text("deploy")
    admin.go("/tracker?ns=bugs")
    page.get_by_role("link", name="Crash on start when").click()
    page.get_by_role("link", name="#15").first.click()
    expect(page.get_by_role("heading", name="What speaks for one defect")).to_be_visible()
    admin.go("/code?ns=app-code")
    page.get_by_label("Search in code").fill("Sessions.open")
    page.keyboard.press("Enter")
    page.locator(".hit a").first.click()
    expect(page.get_by_role("heading", name="Who uses it")).to_be_visible()


def test_the_namespace_is_switched(admin: Watched) -> None:
    page = admin.page
    admin.go("/memories")
    page.get_by_label("Namespace").select_option("hostile")
    page.wait_for_url("**/memories?ns=hostile")
    expect(page.locator(".lede")).to_contain_text("hostile")


def test_a_schema_is_set_and_a_user_is_built_with_evidence(admin: Watched) -> None:
    page = admin.page
    admin.go("/profile")
    page.get_by_role("link", name="Structured profiles").click()
    page.get_by_label("Namespace").select_option("people")
    page.wait_for_url("**ns=people**")
    admin.go("/profile/structured?ns=people")
    page.locator("[name=schema]").fill('{"type": "array"')
    expect(page.locator("[data-json-says]")).to_have_class("length over")
    page.locator("[name=schema]").fill('{"type": "array"}')
    admin.expected.append("422")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("should be object")
    expect(page.locator("[name=schema]")).to_have_value('{"type": "array"}')
    page.locator("[name=schema]").fill('{"type": "object", "properties": {"diet": {"type": "string"}}}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("The schema is set.")
    page.get_by_role("link", name="ada").click()
    page.get_by_role("button", name="Rebuild").click()
    expect(page.locator("#built .badge").first).to_have_text("ready", timeout=20_000)
    expect(page.locator("#built pre")).to_have_text("vegetarian")
    page.locator("#built .feed a").first.click()
    expect(page.get_by_role("heading", name="diet")).to_be_visible()
