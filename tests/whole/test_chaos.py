"""Servers and workers on one PostgreSQL, of which each is killed or stands still while clients write."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest

from loom.storage.postgres.trial import TrialServer
from postgres_server import cut_connections
from running import Server, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CLIENTS = 8
EACH = 15
DEADLINE_S = 120.0
BACK_S_MAX = 30.0
STILL_S = 6
"""How long a transaction of the server that will stand still may do so."""

GOES_ON_S_MAX = 30.0
"""Above that, and the 10 seconds that a write waits for a lock."""

LONG = 5_000
"""More lines than are written before the server is met within a write; clients end when it is enough."""

ROOM_LENGTH = 200_000
SETTINGS = {"embedder": "hashing", "later_work": "elsewhere", "writes_per_minute": "1000000"}
HOLDS = """
SELECT 1 FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
WHERE a.usename = %s AND a.state = 'idle in transaction' AND l.locktype = 'advisory' AND l.granted
"""


@dataclass
class Clients:
    """Clients that append lines, each under its own key, until every line was acknowledged."""

    servers: list[Server]
    each: int = EACH
    acknowledged: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    enough: threading.Event = field(default_factory=threading.Event)

    def run(self, client: int) -> None:
        servers = deque(self.servers)
        servers.rotate(client)
        for number in range(self.each):
            line = f"line {client}.{number}"
            if self.enough.is_set():
                return
            if not self.append(line, servers):
                self.failed.append(line)
                return
            self.acknowledged.append(line)

    def append(self, line: str, servers: "deque[Server]") -> bool:
        """Send a line under its own key, to one server after another, until one says yes; stay with that one."""
        body = {"namespace": "chaos", "agent": "shared", "label": "all", "addition": line}
        until_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < until_s:
            server = servers[0]
            try:
                answer = httpx.post(
                    f"{server.url}/v1/profile.append", json=body, headers={"Idempotency-Key": line}, timeout=20
                )
            except httpx.TransportError:
                servers.rotate(-1)
                continue
            if answer.status_code == 200:
                return True
            servers.rotate(-1)
            if answer.status_code not in (409, 503):
                self.failed.append(f"{answer.status_code} {answer.text[:200]}")
                return False
        return False

    def wait_for(self, count: int) -> None:
        until_s = time.monotonic() + DEADLINE_S
        while len(self.acknowledged) < count and not self.failed:
            assert time.monotonic() < until_s, f"{len(self.acknowledged)} of {count} lines"
            threading.Event().wait(0.02)


@pytest.fixture
def postgres() -> Iterator[TrialServer]:
    folder = Path(tempfile.mkdtemp(prefix="loom-pg-"))
    folder.chmod(0o711)
    server = TrialServer(folder / "server", {"fsync": "off", "max_connections": "100"})
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def worker(home: Path, url: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOM_")}
    settings = {"LOOM_HOME": str(home), "LOOM_DATABASE_URL": url, "LOOM_EMBEDDER": "hashing"}
    return subprocess.Popen([sys.executable, "-m", "loom", "worker"], env=kept | settings, stderr=subprocess.DEVNULL)


def jobs_left(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM loom.job").fetchone()
    return int(found[0]) if found else 0


def test_nothing_acknowledged_is_lost_whatever_dies(postgres: TrialServer, tmp_path: Path) -> None:
    url = postgres.url()
    with ExitStack() as stack:
        servers = [stack.enter_context(running(tmp_path / f"s{n}", database_url=url, **SETTINGS)) for n in range(3)]
        workers = [worker(tmp_path / "w0", url), worker(tmp_path / "w1", url)]
        stack.callback(lambda: [one.kill() for one in workers])
        clients = Clients(servers)
        threads = [threading.Thread(target=clients.run, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        clients.wait_for(20)
        cut_connections(url, "loom%")
        clients.wait_for(40)
        servers[0].kill()
        workers[0].send_signal(signal.SIGKILL)
        workers[0].wait(60)
        clients.wait_for(60)
        postgres.stop()
        postgres.start()
        back_s = time.monotonic()
        clients.wait_for(len(clients.acknowledged) + 5)
        assert time.monotonic() - back_s < BACK_S_MAX
        for thread in threads:
            thread.join(DEADLINE_S)
        assert clients.failed == []
        shown = servers[1].call("profile.render", namespace="chaos", agent="-", format="markdown")["rendered"]
        lines = [line for line in shown.splitlines() if line.startswith("line ")]
        assert sorted(lines) == sorted(clients.acknowledged), "each line once, none lost"
        assert len(lines) == CLIENTS * EACH
        until_s = time.monotonic() + DEADLINE_S
        while jobs_left(url):
            assert time.monotonic() < until_s, "the other worker does what the killed one left"
            threading.Event().wait(0.2)
        assert servers[2].call("ops.health")["status"] == "ok"
        workers[1].terminate()
        assert workers[1].wait(60) == 0


def holds_a_lock(url: str, login: str) -> bool:
    """Whether a transaction of this login stands still and holds what others wait for."""
    with psycopg.connect(url) as connection:
        return connection.execute(HOLDS, [login]).fetchone() is not None


def stop_while_it_holds_a_lock(server: Server, url: str, login: str) -> None:
    """Stop the process as a debugger or a frozen machine would, in the middle of a write."""
    until_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < until_s:
        server.process.send_signal(signal.SIGSTOP)
        # Statements that were on their way end meanwhile; a transaction that is not at its end then stands still.
        threading.Event().wait(0.2)
        if holds_a_lock(url, login):
            return
        server.process.send_signal(signal.SIGCONT)
        threading.Event().wait(0.05)
    raise AssertionError("the server was never met within a write")


def test_a_server_that_stands_still_holds_no_lock_for_ever(postgres: TrialServer, tmp_path: Path) -> None:
    url = postgres.url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE still SUPERUSER LOGIN")
    with ExitStack() as stack:
        well = [stack.enter_context(running(tmp_path / f"s{n}", database_url=url, **SETTINGS)) for n in range(2)]
        its_url = url.replace("postgres@", "still@", 1)
        still = stack.enter_context(
            running(tmp_path / "s2", database_url=its_url, database_idle_s=str(STILL_S), **SETTINGS)
        )
        stack.callback(still.process.send_signal, signal.SIGCONT)
        place = {"namespace": "chaos", "agent": "shared", "label": "all"}
        well[0].call("profile.set", **place, value="first", char_limit=ROOM_LENGTH)
        clients = Clients([*well, still], each=LONG)
        threads = [threading.Thread(target=clients.run, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        clients.wait_for(5)
        stop_while_it_holds_a_lock(still, url, "still")
        assert clients.failed == []
        stopped_s, before = time.monotonic(), len(clients.acknowledged)
        clients.wait_for(before + CLIENTS)
        assert time.monotonic() - stopped_s < GOES_ON_S_MAX, "the others go on while it still stands"
        assert not holds_a_lock(url, "still")
        still.process.send_signal(signal.SIGCONT)
        clients.enough.set()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert clients.failed == []
        shown = still.call("profile.render", namespace="chaos", agent="-", format="markdown")["rendered"]
        lines = [line for line in shown.splitlines() if line.startswith("line ")]
        assert sorted(lines) == sorted(clients.acknowledged), "each line once, none lost"
        assert len(lines) < CLIENTS * LONG, "the clients had more to write all the time"
