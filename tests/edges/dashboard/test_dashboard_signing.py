"""Who is let in, how, and for how long; and what each role is shown and refused."""

import re
import time
from datetime import timedelta

import pytest
from dashboard_kit import Browser, call, mint

from loom import compose, config, system
from loom.access import sessions
from loom.access.caller import LOCAL
from loom.access.sessions import Sessions
from loom.access.tokens import Authenticator
from loom.edges.cli.main import main
from loom.edges.dashboard.cookies import SESSION_TTL_S
from loom.storage.interface import SYSTEM_ORG

ATTRIBUTES = re.compile(r";\s*")


def unnoticed(_token_id: str, _at_us: int) -> None:
    pass


def cookie_of(header: str) -> tuple[str, set[str]]:
    name, *rest = ATTRIBUTES.split(header)
    return name, {part.lower() for part in rest}


def test_without_tokens_nobody_signs_in(browser: Browser) -> None:
    assert "Sign out" not in browser.page("/")
    assert browser.get("/sign-in").headers["location"] == "/"
    name, attributes = cookie_of(Browser(browser.app).get("/").headers["set-cookie"])
    assert name.startswith("loom_dashboard_7777=")
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert not any(part.startswith("max-age") for part in attributes)


def test_a_token_opens_a_session(app: compose.App) -> None:
    token, token_id = mint(app)
    browser = Browser(app)
    answer = browser.get("/memories", ns="a b")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Fmemories%3Fns%3Da%2Bb")
    wrong = browser.send("/sign-in", {"token": token[:-1] + ("a" if token[-1] != "a" else "b")})
    assert wrong.status_code == 401
    assert "unknown" in wrong.text
    assert token[:-1] not in wrong.text
    before = dict(browser.http.cookies)
    answer = browser.send("/sign-in", {"token": f" {token} ", "next": "/memories?ns=x"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/memories?ns=x")
    name, attributes = cookie_of(answer.headers["set-cookie"])
    assert {"httponly", "samesite=strict", "path=/", f"max-age={SESSION_TTL_S}"} <= attributes
    assert "secure" not in attributes
    assert name.partition("=")[2] not in before.values()
    assert token not in str(answer.headers)
    assert "Sign out" in browser.page("/")
    app.dispatcher.later.flush(SYSTEM_ORG)
    records = call(app, "audit.list", op="dashboard.sign_in")["records"]
    assert sorted((one["principal"], one["outcome"]["signed_in"]) for one in records) == [
        ("-", False),
        (token_id, True),
    ]
    page = browser.page("/access").split('id="audit"')[1]
    assert "dashboard.sign_in" in page
    assert token[:-1] not in page


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\nb"])
def test_signing_in_leads_to_pages_of_this_server_alone(app: compose.App, wanted: str) -> None:
    token, _ = mint(app)
    answer = Browser(app).send("/sign-in", {"token": token, "next": wanted})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_under_https_the_cookie_is_secure(app: compose.App) -> None:
    _, attributes = cookie_of(Browser(app, "https://127.0.0.1:7777").get("/sign-in").headers["set-cookie"])
    assert "secure" in attributes
    behind = Browser(app).get("/sign-in", {"x-forwarded-proto": "https"})
    assert "secure" in cookie_of(behind.headers["set-cookie"])[1]


def test_a_link_signs_in_once(app: compose.App) -> None:
    mint(app)
    path = call(app, "dashboard.link")["path"]
    browser = Browser(app)
    opened = browser.get(path)
    assert opened.status_code == 200
    assert browser.get("/").status_code == 303, "opening the link signs nobody in, the form does"
    code = path.partition("=")[2]
    assert browser.send("/enter", {"code": code}).headers["location"] == "/"
    assert "Sign out" in browser.page("/")
    again = Browser(app).send("/enter", {"code": code})
    assert again.status_code == 401
    assert "used before" in again.text
    assert Browser(app).send("/enter", {"code": "nonsense"}).status_code == 401


def test_a_link_is_its_makers(app: compose.App) -> None:
    token, _ = mint(app, "viewer")
    admin, _ = mint(app)
    authenticator = Authenticator(app.database, lambda: time.time_ns() // 1000, loopback=True, note_use=unnoticed)
    caller = authenticator.authenticate(f"Bearer {token}")
    path = call(app, "dashboard.link", caller=caller)["path"]
    browser = Browser(app)
    browser.send("/enter", {"code": path.partition("=")[2]})
    text = browser.page("/access")
    assert "Tokens and the audit are for admins to see." in text
    assert admin not in text


def test_a_link_and_a_session_end_by_themselves(app: compose.App) -> None:
    token, _ = mint(app)
    now = timedelta(microseconds=time.time_ns() // 1000)
    later = {"us": 0}
    clock = lambda: now // timedelta(microseconds=1) + later["us"]  # noqa: E731
    authenticator = Authenticator(app.database, clock, loopback=True, note_use=unnoticed)
    witness = system.Witness(app.dispatcher.later, "dev", clock)
    kept = Sessions(app.database, authenticator, clock, witness)
    cookie = kept.with_token(token)
    assert kept.of(cookie).caller.role.word == "admin"
    with app.database.transaction(SYSTEM_ORG, write=True) as tx:
        used, _ = sessions.new_code(tx, LOCAL.principal, clock())
        code, expires_at = sessions.new_code(tx, LOCAL.principal, clock())
    assert kept.of(kept.with_code(used)).caller == LOCAL
    assert expires_at - clock() == sessions.CODE_TTL_S * 1_000_000
    later["us"] = sessions.CODE_TTL_S * 1_000_000
    with pytest.raises(sessions.Unauthenticated):
        kept.with_code(code)
    later["us"] = sessions.SESSION_TTL_S * 1_000_000
    with pytest.raises(sessions.Unauthenticated):
        kept.of(cookie)


def test_a_session_ends_with_its_token(app: compose.App) -> None:
    token, token_id = mint(app, "writer")
    browser = Browser(app)
    browser.sign_in(token)
    assert browser.get("/memories").status_code == 200
    mark = browser.csrf
    call(app, "token.revoke", token_id=token_id)
    assert browser.get("/memories").status_code == 303
    written = browser.http.post("/memories/edit", data={"csrf": mark, "key": "a", "value": "b"})
    assert written.status_code == 303
    assert written.headers["location"] == "/sign-in"
    assert not call(app, "memory.get", memory_key="a", agent="-")["found"]


def test_signing_out_ends_the_session_everywhere(app: compose.App) -> None:
    token, _ = mint(app)
    browser, thief = Browser(app), Browser(app)
    browser.sign_in(token)
    for name, value in browser.http.cookies.items():
        thief.http.cookies.set(name, value)
    assert thief.get("/").status_code == 200
    assert browser.send("/sign-out", {"csrf": "0" * 64}).status_code == 403
    answer = browser.send("/sign-out", {})
    assert answer.headers["location"] == "/sign-in"
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert browser.get("/").status_code == 303
    assert thief.get("/").status_code == 303


def test_servers_of_one_store_know_the_same_sessions(app: compose.App) -> None:
    token, _ = mint(app)
    browser = Browser(app)
    browser.sign_in(token)
    second = compose.build(config.load())
    try:
        elsewhere = Browser(second)
        for name, value in browser.http.cookies.items():
            elsewhere.http.cookies.set(name, value)
        assert elsewhere.get("/").status_code == 200
        assert elsewhere.send("/access/create", {"name": "there"}).status_code == 303
    finally:
        second.close()


def test_only_hashes_of_codes_and_cookies_are_kept(app: compose.App) -> None:
    token, _ = mint(app)
    browser = Browser(app)
    browser.sign_in(token)
    code = call(app, "dashboard.link")["path"].partition("=")[2]
    (cookie,) = browser.http.cookies.values()
    with app.database.transaction(SYSTEM_ORG, write=False) as tx:
        rows = [*tx.rows("SELECT * FROM sign_in_code WHERE org = :org")]
        rows += tx.rows("SELECT * FROM sign_in_session WHERE org = :org")
    assert len(rows) == 2
    assert code not in str(rows)
    assert cookie not in str(rows)
    assert token.rpartition("_")[2] not in str(rows)


FORGED: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("/memories/edit", {"key": "forged", "value": "x"}, {}),
    ("/memories/act", {"act": "delete"}, {"key": "tea", "by": "claude"}),
    ("/memories/act", {"act": "redact"}, {"key": "tea", "by": "claude"}),
    ("/profile/section", {"label": "forged", "value": "x", "char_limit": "10"}, {}),
    ("/profile/delete", {}, {"label": "goals", "by": "claude"}),
    ("/knowledge/add", {"text": "x", "title": "forged"}, {}),
    ("/knowledge/finish", {"upload_id": "x", "file_name": "x"}, {}),
    ("/conversations/delete", {}, {"session": "s"}),
    ("/code/index", {"namespace": "c", "source": "https://host.example/a.git"}, {}),
    ("/access/create", {"name": "forged"}, {}),
    ("/access/mint", {"name": "forged", "role": "viewer"}, {}),
    ("/access/revoke", {"token_id": "0123456789ab"}, {}),
    ("/access/delete", {"name": "local", "confirm": "local"}, {}),
]


def test_a_viewer_sees_nothing_that_writes_and_a_forged_write_is_refused(app: compose.App) -> None:
    call(app, "memory.set", memory_key="tea", value="green")
    call(app, "profile.set", label="goals", value="ship")
    call(app, "conversation.append", session="s", messages=[{"role": "user", "content": "hello"}])
    token, _ = mint(app, "viewer")
    browser = Browser(app)
    browser.sign_in(token)
    pages = (
        browser.page(path, **params)
        for path, params in (
            ("/", {}),
            ("/memories", {}),
            ("/memories/one", {"key": "tea", "by": "claude", "ns": "local"}),
            ("/profile", {"ns": "local"}),
            ("/profile/section", {"label": "goals", "by": "claude", "ns": "local"}),
            ("/conversations/one", {"session": "s", "ns": "local"}),
            ("/knowledge", {}),
            ("/code", {}),
            ("/access", {}),
        )
    )
    for text in pages:
        assert re.findall(r'method="post" action="([^"?]*)', text) == ["/sign-out"]
    mark = re.search(r'name="csrf" value="(\w+)"', browser.page("/"))
    assert mark
    for path, form, params in FORGED:
        answer = browser.http.post(path, data={"csrf": mark[1], **form}, params={"ns": "local", **params})
        assert answer.status_code == 403, (path, answer.text[:500])
    assert call(app, "memory.get", memory_key="tea")["found"]
    assert call(app, "conversation.get", session="s")["found"]
    assert len(call(app, "token.list")["tokens"]) == 1


def test_a_writer_sees_no_tokens(app: compose.App) -> None:
    token, _ = mint(app, "writer")
    browser = Browser(app)
    browser.sign_in(token)
    assert "New memory" in browser.page("/memories")
    text = browser.page("/access")
    assert "Mint" not in text
    assert 'id="audit"' not in text
    assert "Delete for good" not in text


def test_a_pinned_caller_sees_its_own(app: compose.App) -> None:
    call(app, "memory.set", memory_key="mine", value="x", agent="codex", user_id="ada", namespace="team")
    call(app, "memory.set", memory_key="theirs", value="x", agent="claude", user_id="bob", namespace="team")
    call(app, "memory.set", memory_key="elsewhere", value="x", namespace="secret")
    pins = {"user_id": "ada", "agent": "codex"}
    token, _ = mint(app, "writer", namespaces=["team"], pins=pins, read_scope="own_user")
    browser = Browser(app)
    browser.sign_in(token)
    text = browser.page("/memories")
    assert "<bdi>mine</bdi>" in text
    assert "theirs" not in text
    assert "secret" not in browser.page("/")
    assert browser.get("/memories", ns="secret").status_code == 403
    assert browser.page("/memories/one", key="mine", by="codex", about="ada")
    assert browser.get("/memories/one", key="theirs", by="claude", about="bob").status_code == 404
    assert browser.send("/memories/act", {"act": "pin"}, key="mine", by="codex", about="ada").status_code == 303


def test_the_first_token_does_not_shut_out_who_made_it(app: compose.App, browser: Browser) -> None:
    minted = browser.send("/access/mint", {"name": "Ada", "role": "admin", "days": "30", "namespaces": "a, b"})
    assert minted.status_code == 200
    found = re.search(r"loom_[0-9a-f]{12}_[\w-]{43}", minted.text)
    assert found
    assert found[0] not in browser.page("/access")
    assert Browser(app).get("/").status_code == 303
    assert "Sign out" in browser.page("/")
    other = Browser(app)
    other.sign_in(found[0])
    listed = call(app, "token.list")["tokens"]
    assert browser.send("/access/revoke", {"token_id": listed[0]["token_id"]}).status_code == 303
    assert other.get("/").status_code == 303
    assert browser.send("/access/mint", {"name": "x", "days": "x"}).status_code == 422


def test_a_session_ends_with_the_token_that_minted_its_own_unless_it_is_kept(app: compose.App) -> None:
    admin, _ = mint(app)
    browser = Browser(app)
    browser.sign_in(admin)
    for name in ("kept", "ended"):
        made = browser.send("/access/mint", {"name": name, "role": "admin"})
        token = re.search(r"loom_([0-9a-f]{12})_[\w-]{43}", made.text)
        assert token
        minting = Browser(app)
        minting.sign_in(token[0])
        child = re.search(r"loom_[0-9a-f]{12}_[\w-]{43}", minting.send("/access/mint", {"name": f"by {name}"}).text)
        assert child
        other = Browser(app)
        other.sign_in(child[0])
        text = browser.page("/access")
        assert f"by <code>{token[1]}</code>" in text
        form = {"token_id": token[1], **({"keep_minted": "yes"} if name == "kept" else {})}
        said = browser.send("/access/revoke", form).headers["location"]
        assert (minting.get("/").status_code, other.get("/").status_code) == (303, 200 if name == "kept" else 303)
        assert ("still good" in browser.page(said)) == (name == "kept")
        assert ("End them now" in browser.page("/access")) == (name == "kept")
        if name == "kept":
            assert browser.send("/access/revoke", {"token_id": token[1], "keep_minted": "no"}).status_code == 303
            assert other.get("/").status_code == 303
            assert "End them now" not in browser.page("/access")
    assert "by the local user" in browser.page("/access")


def test_a_link_from_elsewhere_does_not_cost_the_session(app: compose.App) -> None:
    answer = Browser(app).get("/memories", {"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert 'http-equiv="refresh"' in answer.text


def test_other_hosts_get_no_page(app: compose.App) -> None:
    assert Browser(app, "http://evil.example:7777").get("/").status_code == 421


def test_the_command_line_prints_a_link_that_signs_in(
    app: compose.App, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mint(app)
    monkeypatch.setenv("LOOM_PORT", "7777")
    assert main(["dashboard"], "loom.compose") == 0
    said = capsys.readouterr()
    assert "It works once, within five minutes." in said.err
    url = said.out.strip()
    assert url.startswith("http://127.0.0.1:7777/enter?code=")
    browser = Browser(app)
    assert browser.send("/enter", {"code": url.partition("=")[2]}).headers["location"] == "/"
    assert '<td data-label="Role">admin' in browser.page("/access")
    assert main(["dashboard", "--json"], "loom.compose") == 0
    assert '"url"' in capsys.readouterr().out
