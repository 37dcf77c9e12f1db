"""Every page, with nothing stored, with something, and with something that is out to do harm."""

import json
from typing import Any

import pytest
from dashboard_kit import PROBE, Browser, call, mint
from starlette.routing import Route

from loom import compose
from loom.edges.dashboard.view import NAVIGATION

PATHS = [path for path, _ in NAVIGATION]


@pytest.mark.parametrize("path", [*PATHS, "/memories/edit", "/profile/new", "/health"])
def test_a_page_is_good_with_nothing_stored(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text[:1000]
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in answer.text
    assert " style=" not in answer.text
    assert " onclick=" not in answer.text


def test_with_nothing_stored_pages_say_how_to_connect(browser: Browser) -> None:
    for path in ("/", "/memories"):
        assert "claude mcp add --transport http --scope user loom http://127.0.0.1:7777/mcp" in browser.page(path)


def test_every_static_file_that_a_page_names_is_there(browser: Browser) -> None:
    text = browser.page("/")
    names = [part.split('"')[0] for part in text.split('="/static/')[1:]]
    assert {name.partition("?")[0] for name in names} == {
        "icon.svg",
        "uplot-1.6.32.min.css",
        "app.css",
        "htmx-2.0.11.min.js",
        "uplot-1.6.32.min.js",
        "app.js",
    }
    for name in names:
        answer = browser.get(f"/static/{name}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert browser.get("/favicon.ico").status_code == 200
    assert browser.get("/static/vendored.json").status_code == 404


def test_what_is_not_there_is_a_page_for_people_and_an_error_for_programs(browser: Browser) -> None:
    page = browser.get("/nowhere")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "no page at this address" in page.text
    program = browser.http.get("/nowhere")
    assert (program.status_code, program.json()["detail"]["code"]) == (404, "NOT_FOUND")
    assert browser.get("/memories/one", key="none").status_code == 404
    assert browser.get("/conversations/one", session="none").status_code == 404
    assert browser.get("/tracker/issue", number="1").status_code == 404
    assert browser.get("/knowledge/document", id="doc_00").status_code == 404


def filled(app: compose.App) -> dict[str, str]:
    """Something hostile in every field that takes text; where to look at it."""
    key = PROBE[:400]
    memory: dict[str, Any] = {"memory_key": key, "value": PROBE, "memory_type": PROBE[:60], "tags": [PROBE[:100]]}
    call(app, "memory.set", agent=PROBE[:200], user_id=PROBE[:200], source_trace=PROBE, **memory)
    call(app, "memory.set", memory_key="object", value={PROBE: [PROBE]})
    call(app, "memory.lock", memory_key="object", mode="no_delete", reason=PROBE)
    call(app, "profile.set", label=f"s {key}", value=PROBE)
    call(app, "profile.render", agent=PROBE[:200])
    call(app, "namespace.create", name=PROBE[:200], description=PROBE)
    messages = [{"role": "user", "content": PROBE, "speaker": PROBE}, {"role": "assistant", "content": PROBE}]
    call(app, "conversation.append", session=PROBE[:200], title=PROBE, messages=messages)
    text = f"# {PROBE}\n\n{PROBE}\n\n```\nbroken"
    document = call(app, "knowledge.add", text=text, title=PROBE, uri=PROBE, tags=[PROBE[:100]])
    issue: dict[str, Any] = {"title": PROBE, "body": f'Traceback\n  File "{PROBE}", line 1, in x\nLockedError: {PROBE}'}
    for number in (1, 2):
        call(app, "tracker.add", namespace="bugs", number=number, component=PROBE, version=PROBE, **issue, url=PROBE)
    return {"key": key, "session": PROBE[:200], "document": document["document_id"]}


def test_what_is_stored_is_text_on_every_page(app: compose.App, browser: Browser) -> None:
    known = filled(app)
    call(app, "memory.set", memory_key="two", value="old")
    call(app, "memory.set", memory_key="two", value=PROBE)
    versions = call(app, "memory.history", memory_key="two")["versions"]
    two = {"key": "two", "by": "claude", "old": versions[1]["version_text"], "new": versions[0]["version_text"]}
    pages: list[tuple[str, dict[str, str]]] = [
        *((path, {}) for path in PATHS),
        ("/search", {"q": PROBE, "explain": "1", "tags": PROBE}),
        ("/memories", {"contains": PROBE}),
        ("/memories/one", {"key": known["key"], "by": PROBE[:200], "about": PROBE[:200]}),
        ("/memories/one", {"key": "object", "by": "claude"}),
        ("/memories/one", two),
        ("/memories/edit", {"key": known["key"], "by": PROBE[:200], "about": PROBE[:200]}),
        ("/profile/section", {"label": f"s {known['key']}", "by": "claude"}),
        ("/conversations", {"q": PROBE}),
        ("/conversations/one", {"session": known["session"], "q": PROBE}),
        ("/knowledge", {"q": "script"}),
        ("/knowledge/document", {"id": known["document"], "line": "1", "q": "script"}),
        ("/tracker", {"ns": "bugs", "q": PROBE}),
        ("/tracker/issue", {"ns": "bugs", "number": "1", "with": "2"}),
        ("/", {"ns": PROBE[:200], "agent": PROBE[:200], "user": PROBE[:200]}),
        ("/enter", {"code": PROBE}),
        ("/nowhere", {"x": PROBE}),
    ]
    for path, params in pages:
        answer = browser.get(path, **params)
        assert answer.status_code == (404 if path == "/nowhere" else 200), (path, answer.text[:1500])
        assert "<script>alert" not in answer.text, path
        assert "<img src=x" not in answer.text, path
        assert "'><img" not in answer.text, path


def test_a_text_that_turns_the_line_round_is_kept_apart(app: compose.App, browser: Browser) -> None:
    call(app, "memory.set", memory_key="turned\u202e", value="\u202eevil")
    assert "<bdi>turned\u202e</bdi>" in browser.page("/memories")
    assert '<pre class="text " tabindex="0" dir="auto">\u202eevil</pre>' in browser.page(
        "/memories/one", key="turned\u202e", by="claude"
    )


def test_a_long_text_is_cut_until_it_is_asked_for(app: compose.App, browser: Browser) -> None:
    long = "x" * 200_000 + "end"
    call(app, "memory.set", memory_key="long", value=long)
    cut = browser.page("/memories/one", key="long", by="claude")
    assert len(cut) < 60_000
    assert "Show all 200\u202f003 characters" in cut
    assert long in browser.page("/memories/one", key="long", by="claude", all="1")
    call(app, "profile.set", label="long section", value="y" * 1_000_000, char_limit=2_000_000)
    assert len(browser.page("/profile")) < 60_000
    assert "y" * 1_000_000 in browser.page("/profile", all_xml="1")


def test_the_dashboard_is_no_reader_of_the_profile(app: compose.App, browser: Browser) -> None:
    call(app, "profile.set", label="drinks", value="tea")
    call(app, "profile.render", agent="codex")
    for path in ("/", "/profile"):
        browser.page(path)
    assert "drinks" in browser.page("/search", q="tea")
    entries = call(app, "profile.activity")["entries"]
    assert [(entry["agent"], entry["read_count"]) for entry in entries] == [("codex", 1)]
    assert "codex" in browser.page("/profile")


def test_a_search_says_why_a_hit_is_where_it_is(app: compose.App, browser: Browser) -> None:
    call(app, "memory.set", memory_key="team/tea", value="We drink green tea at four.")
    text = browser.page("/search", q="green tea", explain="1")
    assert "rank score" in text
    assert 'aria-label="words adds' in text
    assert "team/tea" in text
    assert "rank score" not in browser.page("/search", q="green tea")
    assert browser.get("/search", q="tea", recipe="nonsense").status_code == 422


def test_lists_have_pages(app: compose.App, browser: Browser) -> None:
    items = [{"memory_key": f"k{number:03}", "value": "x"} for number in range(60)]
    call(app, "memory.set_many", items=items)
    first = browser.page("/memories", order="memory_key")
    assert "k000" in first
    assert "k059" not in first
    following = first.split('rel="next" href="')[1].split('"')[0]
    second = browser.page(following)
    assert "k059" in second
    assert "k000" not in second
    assert browser.get("/memories", cursor="nonsense").status_code == 422


def test_the_audit_has_pages_and_filters(app: compose.App, browser: Browser) -> None:
    key = f"k {PROBE}"
    call(app, "memory.set", memory_key=key, value="x", agent=PROBE[:200])
    call(app, "memory.delete", memory_key=key, agent=PROBE[:200])
    for number in range(60):
        call(app, "namespace.create", name=f"n{number:02}")
    first = browser.page("/access", at="n59").split('id="audit"')[1]
    assert "namespace.create" in first
    assert 'rel="next"' not in first
    first = browser.page("/access").split('id="audit"')[1]
    assert "<bdi>n59</bdi>" in first
    assert "<bdi>n09</bdi>" not in first
    following = first.split('rel="next" href="')[1].split('"')[0]
    assert following.endswith("#audit")
    second = browser.get(following).text.split('id="audit"')[1]
    assert "<bdi>n09</bdi>" in second
    assert "k &lt;script&gt;" in second
    assert "<script>" not in second.split("</section>")[0]
    assert "<img" not in second.split("</section>")[0]
    refused = browser.get("/access", cursor="nonsense")
    assert refused.status_code == 422
    assert "cursor: not of an earlier answer" in refused.text
    assert "No record passes this filter" in browser.page("/access", op="token.mint")


def test_an_admin_of_one_user_is_told_no_audit(app: compose.App) -> None:
    browser = Browser(app)
    browser.sign_in(mint(app, "admin", pins={"user_id": "ada"}, read_scope="own_user")[0])
    text = browser.page("/access")
    assert "Tokens" in text
    assert 'id="audit"' not in text


def test_a_list_is_filtered(app: compose.App, browser: Browser) -> None:
    call(app, "memory.set", memory_key="one", value="tea", tags=["a"], memory_type="decision")
    call(app, "memory.set", memory_key="two", value="tea", agent="codex", user_id="ada")
    call(app, "memory.delete", memory_key="two", agent="codex", user_id="ada")
    for params in ({"tags": "a"}, {"type": "decision"}, {"by": "claude"}, {"contains": "TEA"}, {"prefix": "on"}):
        assert "<bdi>one</bdi>" in browser.page("/memories", **params)
    assert "<bdi>two</bdi>" not in browser.page("/memories")
    assert "<bdi>two</bdi>" in browser.page("/memories", status="tombstoned")
    assert "<bdi>two</bdi>" in browser.page("/memories", status="tombstoned", about="ada")
    assert "<bdi>two</bdi>" not in browser.page("/memories", status="tombstoned", about="bob")


def test_the_chosen_identity_goes_along(app: compose.App, browser: Browser) -> None:
    call(app, "memory.set", namespace="other", memory_key="there", value="x")
    text = browser.page("/memories", ns="other", agent="claude")
    assert "<bdi>there</bdi>" in text
    assert 'href="/profile?ns=other&agent=claude"' in text
    assert '<option value="other" selected>' in text


def test_a_plane_with_an_org_of_its_own_offers_its_own_namespaces(app: compose.App, browser: Browser) -> None:
    call(app, "tracker.add", namespace="bugs", number=7, title="Crash")
    text = browser.page("/tracker")
    assert "Crash" in text
    assert '<option value="bugs" selected>' in text
    assert 'href="/memories"' in text


def test_a_chart_carries_its_numbers_as_data_and_as_a_table(app: compose.App, browser: Browser) -> None:
    call(app, "memory.set", memory_key="a", value="x")
    text = browser.get("/").text
    raw = text.split('data-chart="')[1].split('"')[0].replace("&#34;", '"')
    data = json.loads(raw)
    assert len(data["x"]) == 30
    assert data["lines"] == [{"name": "memories", "y": [0] * 29 + [1]}]


def test_health_says_what_does_not_work(browser: Browser) -> None:
    assert "all well" in browser.page("/health")


def test_every_page_of_the_dashboard_needs_somebody_except_signing_in(app: compose.App) -> None:
    call(app, "token.mint", name="first", role="admin")
    stranger = Browser(app)
    routes = [route for route in app.asgi.routes if isinstance(route, Route)]  # type: ignore[attr-defined]
    pages = [route.path for route in routes if "GET" in (route.methods or ()) and not route.path.startswith("/v1")]
    met = {path: stranger.get(path).status_code for path in pages if "{" not in path}
    is_open = {path for path, status in met.items() if status == 200}
    api = {"/healthz", "/readyz", "/openapi.json", "/docs", "/docs/page.js", "/docs/page.css"}
    assert {path for path in is_open - api if not path.startswith("/static/")} == {"/sign-in", "/enter", "/favicon.ico"}
    assert met["/memories"] == 303
