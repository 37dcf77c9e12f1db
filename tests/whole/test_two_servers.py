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
    with (
        postgres.bare() as url,
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
