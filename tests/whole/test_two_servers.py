"""Two servers on one PostgreSQL: appends to one section share commits in each, and take turns between them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from postgres_server import TestServer
from running import Server, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CLIENTS = 16
EACH = 50
SETTINGS = {"embedder": "hashing", "later_work": "elsewhere", "writes_per_minute": "1000000"}
PLACE = {"namespace": "two", "agent": "shared", "label": "all"}


@pytest.fixture
def servers(postgres: TestServer, tmp_path: Path) -> Iterator[list[Server]]:
    with postgres.bare() as url:
        postgres.keep_deadlocks(url)
        with (
            running(tmp_path / "one", database_url=url, database_connections_max="4", **SETTINGS) as one,
            running(tmp_path / "other", database_url=url, database_connections_max="4", **SETTINGS) as other,
        ):
            yield [one, other]


def test_no_append_is_lost_and_their_order_is_that_of_the_text(servers: list[Server]) -> None:
    """The pool of each server is smaller than the number of its clients."""

    def work(client: int) -> dict[str, int]:
        versions: dict[str, int] = {}
        with servers[client % 2].client() as http:
            for turn in range(EACH):
                line = f"n{client}.{turn}"
                answer = http.post("/v1/profile.append", json={**PLACE, "addition": line})
                assert answer.status_code == 200, answer.text
                versions[line] = answer.json()["version"]
        return versions

    with ThreadPoolExecutor(CLIENTS) as pool:
        versions = {line: version for given in pool.map(work, range(CLIENTS)) for line, version in given.items()}
    shown = servers[0].call("profile.render", namespace="two", agent="-", format="markdown")["rendered"]
    lines = [line for line in shown.splitlines() if line.startswith("n")]
    assert len(lines) == CLIENTS * EACH
    assert lines == sorted(versions, key=versions.__getitem__)


def test_a_write_that_is_sent_to_both_at_once_happens_once(servers: list[Server]) -> None:
    """Pairs of clients, one at each server, send the same writes under the same keys, to one section."""

    def work(client: int) -> list[dict[str, object]]:
        answers: list[dict[str, object]] = []
        with servers[client % 2].client() as http:
            for turn in range(20):
                line = f"n{client // 2}.{turn}"
                headers = {"Idempotency-Key": line}
                answer = http.post("/v1/profile.append", json={**PLACE, "addition": line}, headers=headers)
                assert answer.status_code == 200, answer.text
                answers.append(answer.json())
        return answers

    with ThreadPoolExecutor(CLIENTS) as pool:
        given = list(pool.map(work, range(CLIENTS)))
    assert given[::2] == given[1::2]
    shown = servers[0].call("profile.render", namespace="two", agent="-", format="markdown")["rendered"]
    lines = [line for line in shown.splitlines() if line.startswith("n")]
    assert sorted(lines) == sorted(f"n{pair}.{turn}" for pair in range(CLIENTS // 2) for turn in range(20))


def test_a_refused_write_costs_no_other(servers: list[Server]) -> None:
    def work(client: int) -> list[int]:
        codes: list[int] = []
        with servers[client % 2].client() as http:
            for turn in range(20):
                append = http.post("/v1/profile.append", json={**PLACE, "addition": f"line {client}.{turn}"})
                refused = http.post("/v1/profile.replace", json={**PLACE, "old": "not there", "new": "x"})
                codes += [append.status_code, refused.status_code]
        return codes

    with ThreadPoolExecutor(CLIENTS) as pool:
        codes = [code for given in pool.map(work, range(CLIENTS)) for code in given]
    assert codes == [200, 422] * 20 * CLIENTS
    shown = servers[1].call("profile.render", namespace="two", agent="-", format="markdown")["rendered"]
    assert len({line for line in shown.splitlines() if line.startswith("line ")}) == 20 * CLIENTS


def test_a_token_and_what_it_minted_end_on_both_servers_at_once(servers: list[Server]) -> None:
    one, other = servers
    first = one.call("token.mint", name="first", role="admin")
    keeper = minted(one, first["token"])
    leaked = minted(other, first["token"])
    child = minted(one, leaked["token"])
    grandchild = minted(other, child["token"])
    with other.client() as browser:
        page = browser.get("/sign-in").text
        csrf = page.split('name="csrf" value="')[1][:64]
        form = {"csrf": csrf, "token": grandchild["token"]}
        assert browser.post("/sign-in", data=form, headers={"origin": other.url}).status_code == 303
        assert browser.get("/access", headers={"accept": "text/html"}).status_code == 200
        with one.client(keeper["token"]) as http:
            answer = http.post("/v1/token.revoke", json={"token_id": leaked["token_id"]}).json()
        assert (answer["minted_revoked"], answer["minted_kept"]) == (2, 0)
        assert browser.get("/access", headers={"accept": "text/html"}).status_code == 303
    for server in servers:
        for made in (leaked, child, grandchild):
            with server.client(made["token"]) as http:
                assert http.post("/v1/namespace.list", json={}).status_code == 401
        with server.client(keeper["token"]) as http:
            assert http.post("/v1/namespace.list", json={}).status_code == 200


def minted(server: Server, by: str) -> dict[str, str]:
    """A token that another one mints, over HTTP."""
    with server.client(by) as http:
        answer = http.post("/v1/token.mint", json={"name": "one more", "role": "admin"})
    assert answer.status_code == 200, answer.text
    return answer.json()
