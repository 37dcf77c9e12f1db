"""A full disk, a folder that cannot be written, a foreign or damaged store, an embedder that fails."""

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from running import Server, running, spawn

pytestmark = pytest.mark.slow


FROM_THE_FUTURE = """
INSERT INTO store_migration (stream, number, name, applied_us)
SELECT DISTINCT stream, 9999, 'from the future', 0 FROM store_migration
"""


def ended(home: Path) -> tuple[int, str]:
    """The exit code and the words of a server that should refuse to start on this store."""
    _, process = spawn(home, {"LOOM_EMBEDDER": "hashing"})
    code = process.wait(60)
    newest = max(home.parent.glob(f"{home.name}-*.log"), key=lambda log: log.stat().st_mtime_ns)
    return code, newest.read_text("utf-8")


def org_file(home: Path) -> Path:
    [path] = [path for path in home.rglob("*.db") if path.name.startswith("dev")]
    return path


def filled(home: Path) -> None:
    with running(home, embedder="hashing") as server:
        server.call("memory.set", namespace="n", agent="a", memory_key="k", value="kept")


def test_a_store_of_a_newer_version_is_refused_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(home)
    for path in home.rglob("*.db"):
        connection = apsw.Connection(str(path))
        connection.execute(FROM_THE_FUTURE)  # pyright: ignore[reportUnknownMemberType]  # apsw's stubs name a private type
        connection.close()
    code, words = ended(home)
    assert code == 1
    assert "newer" in words
    assert "Traceback" not in words


def test_a_damaged_store_is_refused_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    filled(home)
    for path in home.rglob("*.db"):
        for beside in path.parent.glob(f"{path.name}-*"):
            beside.unlink()
        path.write_bytes(b"this is not a database, whatever its name says" * 100)
    code, words = ended(home)
    assert code == 1
    assert "damaged" in words or "not a" in words
    assert "Traceback" not in words


def test_a_home_that_is_no_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file stands in the way", "utf-8")
    code, words = ended(home)
    assert code != 0
    assert "Traceback" not in words
    assert "folder" in words


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of 12 MB, where the machine lets us mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)], check=False)
    if made.returncode != 0:
        pytest.skip("cannot mount a small file system here; tests/storage fills a store by its page limit")
    return folder


def test_a_full_disk_answers_503_and_loses_nothing(small_disk: Path) -> None:
    try:
        kept, refused = fill(small_disk / "home")
        assert refused["code"] == "UNAVAILABLE"
        assert refused["retryable"] is True
        for ballast in small_disk.glob("ballast*"):
            ballast.unlink()
        with running(small_disk / "home", embedder="hashing") as server:
            for key in kept:
                assert server.call("memory.get", namespace="n", agent="a", memory_key=key)["found"], key
            server.call("memory.set", namespace="n", agent="a", memory_key="after", value="room again")
    finally:
        subprocess.run(["umount", "-l", str(small_disk)], check=True)


def fill(home: Path) -> tuple[list[str], dict[str, object]]:
    """Write until the disk is full; the keys that were acknowledged, and the refusal."""
    home.mkdir(parents=True)
    (home.parent / "ballast").write_bytes(b"\0" * 4_000_000)
    kept: list[str] = []
    with running(home, embedder="hashing", synchronous="FULL") as server:
        for number in range(400):
            key = f"k{number}"
            body = {"namespace": "n", "agent": "a", "memory_key": key, "value": f"{key} " + "word " * 10_000}
            answer = server.http.post("/v1/memory.set", json=body)
            if answer.status_code != 200:
                assert answer.status_code == 503, answer.text[:300]
                assert server.call("memory.get", namespace="n", agent="a", memory_key=kept[0])["found"]
                return kept, answer.json()["detail"]
            kept.append(key)
    raise AssertionError("the disk never filled")


def test_a_taken_port_is_said_in_one_line(server: Server) -> None:
    port = server.url.rpartition(":")[2]
    run = subprocess.run(
        [sys.executable, "-m", "loom", "serve", "--port", port], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 1
    assert f"port {port}" in run.stderr
    assert "Traceback" not in run.stderr
