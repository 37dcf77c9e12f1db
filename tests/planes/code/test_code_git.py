"""Git addresses: which are fetched, and what of them is read."""

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest
from code_kit import Shelf, committed, git, repository, written

from loom.planes.code import git as fetching
from loom.planes.code.git import BadAddress, Fetched, Fetches
from loom.planes.code.sources import SourceFailed, Yard

FILES = {"a.py": "def one():\n    pass\n", "docs/guide.md": "# Guide\n", ".env": "PASSWORD=1\n"}


@pytest.mark.parametrize(
    ("address", "scheme"),
    [
        ("https://git.example.com/acme/app.git", "https"),
        ("https://git.example.com:8443/acme/app", "https"),
        ("ssh://git@git.example.com:22/acme/app.git", "ssh"),
        ("git@git.example.com:acme/app.git", "ssh"),
        ("file:///srv/repositories/app.git", "file"),
    ],
)
def test_addresses_that_are_fetched(address: str, scheme: str) -> None:
    assert fetching.is_address(address)
    assert fetching.checked(address, fetching.SCHEMES) == scheme


@pytest.mark.parametrize(
    "address",
    [
        "http://git.example.com/acme/app",
        "git://git.example.com/acme/app",
        "ext::sh -c touch% /tmp/x",
        "ext://sh",
        "ftp://example.com/x",
        "https://user:password@git.example.com/acme/app",
        "https://token@git.example.com/acme/app",
        "ssh://git:password@git.example.com/acme/app",
        "ssh://-oProxyCommand=touch/acme/app",
        "ssh://-a@git.example.com/acme/app",
        "https://-host/acme/app",
        "https://2130706433/acme/app",
        "https://127.1/acme/app",
        "https://0x7f.0.0.1/acme/app",
        "https://0177.0.0.1/acme/app",
        "https://git.example.com./acme/app",
        "https://[::1/acme/app",
        "git@127.1:acme/app",
        "https:///acme/app",
        "https://git.example.com/",
        "https://git.example.com/a b",
        "https://git.example.com/acme/app.git?private_token=x",
        "https://git.example.com/acme/app#x",
        "https://git.example.com/a\nb",
        "file://host/srv/app",
        "https://git.example.com/" + "x" * 2_000,
        "https://git.example.com\\evil/x",
        "git@git.example.com:-oProxyCommand=x",
    ],
)
def test_addresses_that_are_not(address: str) -> None:
    if fetching.is_address(address):
        with pytest.raises(BadAddress):
            fetching.checked(address, fetching.SCHEMES)
    else:
        assert not Path(address).is_absolute()


def test_only_the_schemes_of_the_setting() -> None:
    with pytest.raises(BadAddress, match="use one of https"):
        fetching.checked("ssh://git@git.example.com/a/b", ("https",))


@pytest.mark.parametrize("name", ["main", "v1.2.3", "feature/x-1", "0123abc", "a+b@c"])
def test_revisions(name: str) -> None:
    assert fetching.is_revision(name)


@pytest.mark.parametrize(
    "name", ["", "-x", "--upload-pack=x", "a..b", "a b", "a:b", "x.lock", "a/", "ä", "^x", "a~1", "x" * 300]
)
def test_words_that_are_no_revisions(name: str) -> None:
    assert not fetching.is_revision(name)


def test_a_commit_is_fetched_and_read(tmp_path: Path, yard: Yard) -> None:
    origin = repository(tmp_path / "origin", FILES)
    written(origin, {"a.py": "def two():\n    pass\n"})
    (origin / "link").symlink_to("a.py")
    commit = committed(origin)
    fetches = Fetches(yard)
    assert fetches.step("k", f"file://{origin}", "", 60.0)
    source = Fetched(fetches.place("k"), yard)
    listing = source.listed()
    assert listing.commit_id == commit
    assert [entry.path for entry in listing.entries] == ["a.py", "docs/guide.md"]
    assert listing.skipped == {"secret": 1, "link": 1}
    contents = {entry.path: content for entry, content in source.read(listing.entries)}
    assert contents["a.py"] == b"def two():\n    pass\n"
    assert not (fetches.place("k") / "hooks").exists()


def test_a_revision_and_a_later_fetch(tmp_path: Path, yard: Yard) -> None:
    origin = repository(tmp_path / "origin", FILES)
    git(origin, "tag", "v1")
    old = git(origin, "rev-parse", "HEAD")
    written(origin, {"b.py": "def three(): pass\n"})
    new = committed(origin)
    fetches = Fetches(yard)
    for revision, commit in (("v1", old), ("", new), ("main", new)):
        assert fetches.step("k", f"file://{origin}", revision, 60.0)
        assert Fetched(fetches.place("k"), yard).listed().commit_id == commit


def test_a_fetch_that_fails_says_so(tmp_path: Path, yard: Yard) -> None:
    with pytest.raises(SourceFailed, match="could not fetch"):
        Fetches(yard).step("k", f"file://{tmp_path}/nothing", "", 60.0)


def test_a_fetch_is_bounded_in_size(tmp_path: Path, yard: Yard) -> None:
    noise = random.Random(1).randbytes(200_000)  # noqa: S311  # not a secret
    origin = repository(tmp_path / "origin", {"big.bin": noise})
    fetches = Fetches(replace(yard, fetch_bytes_max=100_000))
    with pytest.raises(SourceFailed, match="is over"):
        fetches.step("k", f"file://{origin}", "", 60.0)
    assert not fetches.place("k").exists()


def test_a_fetch_is_bounded_in_time(yard: Yard) -> None:
    hanging = {**yard.environment, "GIT_SSH_COMMAND": "sh -c 'sleep 60'"}
    seconds = itertools.count()
    fetches = Fetches(replace(yard, environment=hanging, fetch_timeout_s=8), lambda: float(next(seconds)))
    assert not fetches.step("k", "ssh://git@localhost/a/b", "", 1.0, trusted=True)
    with pytest.raises(SourceFailed, match="took over"):
        fetches.step("k", "ssh://git@localhost/a/b", "", 60.0, trusted=True)


def test_a_fetch_that_was_cut_short_is_begun_again(tmp_path: Path, yard: Yard) -> None:
    origin = repository(tmp_path / "origin", FILES)
    place = Fetches(yard).place("k")
    Fetches(yard).step("k", f"file://{origin}", "", 60.0)
    written(place, {"refs/loom/head.lock": "", "shallow.lock": ""})
    assert Fetches(yard).step("k", f"file://{origin}", "", 60.0)


def test_a_forgotten_repository_leaves_no_folder(tmp_path: Path, yard: Yard) -> None:
    origin = repository(tmp_path / "origin", FILES)
    fetches = Fetches(yard)
    fetches.step("k", f"file://{origin}", "", 60.0)
    fetches.forget("k")
    assert not fetches.place("k").exists()


def test_indexing_an_address(shelf: Shelf, tmp_path: Path, yard: Yard) -> None:
    origin = repository(tmp_path / "origin", FILES)
    status = shelf.index(f"file://{origin}")
    assert (status["state"], status["files_total"], status["commit_id"]) == (
        "ready",
        2,
        git(origin, "rev-parse", "HEAD"),
    )
    assert shelf.names("one") == ["one"]
    written(origin, {"a.py": "def uno():\n    pass\n"})
    committed(origin)
    assert shelf.index("")["state"] == "ready"
    assert "one" not in shelf.names("one")
    assert shelf.names("uno") == ["uno"]
    assert len(list(yard.folder.iterdir())) == 1
    shelf.call("code.delete")
    shelf.finish()
    assert list(yard.folder.iterdir()) == []


def test_an_address_that_cannot_be_fetched(shelf: Shelf, tmp_path: Path) -> None:
    status = shelf.index(f"file://{tmp_path}/nothing")
    assert status["state"] == "failed"
    assert "git could not fetch it" in status["problem"]
    assert str(tmp_path) not in status["problem"]
