"""A token has nothing fetched from the server's own network that the settings do not name."""

import ipaddress
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from code_kit import CODE_ORG, Shelf, repository, written
from https_git import GitServer, serving

from fakes import LIMITS, CoreOf
from loom.access.caller import LOCAL, Caller, Role
from loom.errors import Denied, Rejected
from loom.planes import code
from loom.planes.code import hosts, names
from loom.planes.code.git import Fetches
from loom.planes.code.hosts import Host, cared_for, host_of
from loom.planes.code.sources import SourceFailed, Yard

WRITER = Caller("token", Role.WRITER, {"org": CODE_ORG})
ADMIN = Caller("boss", Role.ADMIN, {"org": CODE_ORG})
NAME = "git.corp.invalid"
"""No name server knows it."""

FILES = {"a.py": "def one():\n    pass\n"}


@dataclass
class Names:
    """What names stand for; counts how often each was asked for."""

    known: Mapping[str, Sequence[str]]
    asked: list[str] = field(default_factory=list[str])

    def __call__(self, name: str, port: int) -> Sequence[str]:
        assert port > 0
        self.asked.append(name)
        if name not in self.known:
            raise OSError(name)
        return self.known[name]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    root = tmp_path / "served"
    repository(root / "app", FILES)
    with serving(root, tmp_path, [NAME, "127.0.0.1"]) as server:
        yield server


YardOf = Callable[..., Yard]


@pytest.fixture
def yard_of(yard: Yard, server: GitServer) -> YardOf:
    def make(known: Mapping[str, Sequence[str]], private_hosts: Sequence[str] = ()) -> Yard:
        direct = {name: value for name, value in yard.environment.items() if not name.lower().endswith("_proxy")}
        environment = {**direct, "GIT_SSL_CAINFO": str(server.certificate)}
        return replace(yard, environment=environment, private_hosts=tuple(private_hosts), resolve=Names(known))

    return make


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://Git.Example.com/a/b", Host("https", "git.example.com", 443)),
        ("https://git.example.com:8443/a", Host("https", "git.example.com", 8443)),
        ("https://[FD00::5]:8443/a", Host("https", "fd00::5", 8443)),
        ("ssh://git@git.example.com:2222/a", Host("ssh", "git.example.com", 2222)),
        ("git@git.example.com:a/b", Host("ssh", "git.example.com", 22)),
        ("file:///srv/a", None),
    ],
)
def test_the_host_of_an_address(address: str, host: Host | None) -> None:
    assert host_of(address) == host


@pytest.mark.parametrize("name", ["git.example.com", "a-1", "10.0.0.5", "fd00::5", "1e100.net", "0x.example"])
def test_hosts_spelled_plainly(name: str) -> None:
    assert hosts.is_plain(name)


@pytest.mark.parametrize(
    "name", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "a.0x1", "git.example.com.", "1:2"]
)
def test_hosts_that_programs_read_differently(name: str) -> None:
    assert not hosts.is_plain(name)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.5",
        "172.16.9.9",
        "192.168.1.1",
        "169.254.169.254",
        "100.100.100.200",
        "0.0.0.0",  # noqa: S104  # nothing listens here
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fec0::1",
        "fd00:ec2::254",
        "ff02::1",
        "ff0e::1",
        "::ffff:10.0.0.5",
        "::127.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::a9fe:a9fe",
    ],
)
def test_addresses_inside(address: str) -> None:
    assert not hosts.is_outside(ipaddress.ip_address(address))
    shown = f"[{address}]" if ":" in address else address
    assert hosts.refused(f"https://{shown}/a", ())
    with pytest.raises(SourceFailed):
        cared_for("https://x.example/a", (), Names({"x.example": ["93.184.216.34", address]}), {})


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::"]
)
def test_addresses_outside(address: str) -> None:
    assert hosts.is_outside(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["https://localhost/a", "https://LOCALHOST:1/a", "https://a.localhost/a"])
def test_the_machine_itself_is_known_by_name(address: str) -> None:
    assert hosts.refused(address, ())
    assert not hosts.refused(address, ("localhost", "a.localhost"))


def test_a_network_that_is_listed_opens_its_addresses_alone() -> None:
    listed = ("10.1.0.0/16", "fd00::/8")
    assert not hosts.refused("https://10.1.2.3/a", listed)
    assert not hosts.refused("https://[fd00::7]/a", listed)
    assert hosts.refused("https://10.2.0.1/a", listed)
    assert hosts.refused("https://127.0.0.1/a", listed)
    known = Names({"in.example": ["10.1.2.3"], "mixed.example": ["10.1.2.3", "10.2.0.1"]})
    assert any("in.example:443:10.1.2.3" in word for word in cared_for("https://in.example/a", listed, known, {}).words)
    with pytest.raises(SourceFailed):
        cared_for("https://mixed.example/a", listed, known, {})


def test_a_name_that_is_listed_is_not_looked_up() -> None:
    known = Names({})
    assert "http.followRedirects=false" in cared_for(f"https://{NAME}/a", (NAME,), known, {}).words
    assert known.asked == []


def test_git_is_told_where_a_name_stands() -> None:
    known = Names({"x.example": ["93.184.216.34", "2606:4700::1111"]})
    words = cared_for("https://X.example:8443/a", (), known, {}).words
    assert "http.curloptResolve=x.example:8443:93.184.216.34,[2606:4700::1111]" in words
    (ssh,) = [one for one in cared_for("ssh://git@x.example:2222/a", (), known, {}).words if "ssh" in one]
    assert ssh.endswith("-oHostName=93.184.216.34 -oHostKeyAlias='[x.example]:2222'")


def test_a_name_that_a_proxy_alone_knows_goes_to_the_proxy() -> None:
    proxied = {"HTTPS_PROXY": "http://proxy.example:3128", "no_proxy": "example.com"}
    care = cared_for("https://x.example/a", (), Names({}), proxied)
    assert care.environment == {"no_proxy": "", "NO_PROXY": ""}
    for address in ("https://127.0.0.1/a", "https://in.example/a", "ssh://x.example/a"):
        with pytest.raises(SourceFailed):
            cared_for(address, (), Names({"in.example": ["10.0.0.5"]}), proxied)


def test_the_system_looks_names_up() -> None:
    assert "127.0.0.1" in names.looked_up("127.0.0.1", 443)
    with pytest.raises(OSError, match=NAME):
        names.looked_up(NAME, 443)


def test_a_fetch_goes_where_the_name_was_looked_up(yard_of: YardOf, server: GitServer) -> None:
    yard = yard_of({NAME: ["127.0.0.1"]}, ["127.0.0.0/8"])
    assert Fetches(yard).step("k", f"https://{NAME}:{server.port}/app", "", 60.0)
    assert isinstance(yard.resolve, Names)
    assert yard.resolve.asked == [NAME]
    assert server.asked


VERSIONS: Mapping[str, bool] = {
    "git version 2.37.0": True,
    "git version 2.39.3 (Apple Git-146)": True,
    "git version 2.45.1.windows.1": True,
    "git version 2.100": True,
    "git version 3.0.0.rc1": True,
    "git version 2.36.9": False,
    "git version 2.4.12": False,
    "git version 1.8.3.1": False,
    "git version 99999.1": False,
    "git version two": False,
    "version 2.45.1": False,
    "": False,
}


def fake_git(folder: Path, said: str, code: int = 0) -> Path:
    """A folder with a `git` of another version, which does all else as the real one."""
    real = shutil.which("git")
    script = f"""#!/bin/sh
if [ "$1" = --version ]; then printf '%s\\n' "{said}"; exit {code}; fi
exec {real} "$@"
"""
    written(folder, {"git": script})
    (folder / "git").chmod(0o755)
    return folder


def with_git(yard: Yard, folder: Path) -> Yard:
    """A yard that finds this folder's `git` first."""
    path = f"{folder}{os.pathsep}{yard.environment.get('PATH', os.defpath)}"
    return replace(yard, environment={**yard.environment, "PATH": path})


@pytest.mark.parametrize("said", VERSIONS)
def test_an_old_git_is_not_sent_to_a_name(said: str, yard_of: YardOf, server: GitServer, tmp_path: Path) -> None:
    """It would look the name up itself. One whose version cannot be read counts as old."""
    yard = with_git(yard_of({NAME: ["127.0.0.1"]}, ["127.0.0.0/8"]), fake_git(tmp_path / "bin", said))
    address = f"https://{NAME}:{server.port}/app"
    if VERSIONS[said]:
        assert Fetches(yard).step("k", address, "", 20.0)
        return
    with pytest.raises(SourceFailed, match=r"git on the server is older than 2\.37"):
        Fetches(yard).step("k", address, "", 20.0)
    assert server.asked == []


def test_a_git_that_fails_to_say_its_version_is_old(yard_of: YardOf, server: GitServer, tmp_path: Path) -> None:
    yard = with_git(yard_of({NAME: ["127.0.0.1"]}, ["127.0.0.0/8"]), fake_git(tmp_path / "bin", "git version 2.45", 1))
    with pytest.raises(SourceFailed, match=r"older than 2\.37"):
        Fetches(yard).step("k", f"https://{NAME}:{server.port}/app", "", 20.0)
    assert server.asked == []


def test_an_old_git_fetches_what_needs_no_pinning(yard_of: YardOf, server: GitServer, tmp_path: Path) -> None:
    """An address in numbers, a name that is listed, a file; and whatever nobody asked for through a token."""
    old = fake_git(tmp_path / "bin", "git version 2.30.2")
    by_number = f"https://127.0.0.1:{server.port}/app"
    assert Fetches(with_git(yard_of({}, ["127.0.0.0/8"]), old)).step("k", by_number, "", 20.0)
    assert Fetches(with_git(yard_of({}, ["127.0.0.1"]), old)).step("l", by_number, "", 20.0)
    assert Fetches(with_git(yard_of({}), old)).step("m", f"file://{tmp_path}/served/app", "", 20.0)
    assert Fetches(with_git(yard_of({}), old)).step("n", by_number, "", 20.0, trusted=True)
    listed = with_git(yard_of({}, [NAME]), old)
    with pytest.raises(SourceFailed, match="could not fetch"):  # nobody knows where it stands, and it is asked for
        Fetches(listed).step("o", f"https://{NAME}:{server.port}/app", "", 20.0)


def test_without_git_a_name_is_not_fetched(yard_of: YardOf, server: GitServer, tmp_path: Path) -> None:
    yard = yard_of({NAME: ["127.0.0.1"]}, ["127.0.0.0/8"])
    bare = replace(yard, environment={**yard.environment, "PATH": str(written(tmp_path / "none", {}))})
    with pytest.raises(SourceFailed, match="git is not installed"):
        Fetches(bare).step("k", f"https://{NAME}:{server.port}/app", "", 20.0)


def test_an_old_git_fails_the_index_and_says_so(
    core_of: CoreOf, yard_of: YardOf, server: GitServer, tmp_path: Path
) -> None:
    known = {"public.example": ["93.184.216.34"]}
    old = with_git(yard_of(known), fake_git(tmp_path / "bin", "git version 2.25.1"))
    status = Shelf(core_of(code.OPS, code.jobs(old)), "old").index("https://public.example/app", caller=WRITER)
    assert (status["state"], status["files_total"]) == ("failed", 0)
    assert "update git" in status["problem"]
    assert server.asked == []


def test_nothing_is_sent_to_a_host_inside(yard_of: YardOf, server: GitServer) -> None:
    yard = yard_of({NAME: ["127.0.0.1"]}, ["10.0.0.0/8"])
    for host in (NAME, "127.0.0.1", "unknown.invalid"):
        with pytest.raises(SourceFailed, match="code_git_private_hosts"):
            Fetches(yard).step("k", f"https://{host}:{server.port}/app", "", 60.0)
    assert server.asked == []


def test_a_redirect_is_followed_for_the_local_user_alone(yard_of: YardOf, server: GitServer) -> None:
    yard = yard_of({}, ["127.0.0.1"])
    moved = f"https://127.0.0.1:{server.port}/moved/app"
    with pytest.raises(SourceFailed, match="a redirect is not followed"):
        Fetches(yard).step("k", moved, "", 60.0)
    assert set(server.asked) == {"/moved/app/info/refs"}
    assert Fetches(replace(yard, private_hosts=())).step("k", moved, "", 60.0, trusted=True)


def test_indexing_an_address_inside(core_of: CoreOf, yard_of: YardOf, server: GitServer) -> None:
    known = {NAME: ["127.0.0.1"]}
    address = f"https://{NAME}:{server.port}/app"
    closed = core_of(code.OPS, code.jobs(yard_of(known)))
    for caller in (WRITER, ADMIN):
        status = Shelf(closed, caller.principal).index(address, caller=caller)
        assert (status["state"], status["files_total"]) == ("failed", 0)
        assert "code_git_private_hosts" in status["problem"]
    assert server.asked == []
    literal = core_of(code.OPS, code.jobs(yard_of(known, ["127.0.0.1"])))
    limits = replace(LIMITS, git_private_hosts=("127.0.0.1",))
    literal = replace(literal, dispatcher=replace(literal.dispatcher, limits=limits))
    by_number = f"https://127.0.0.1:{server.port}/app"
    assert Shelf(literal, "literal").index(by_number, caller=WRITER)["state"] == "ready"
    assert Shelf(closed, "local").index(by_number, caller=LOCAL)["state"] == "ready"


def test_an_address_inside_is_refused_when_it_is_asked_for(shelf: Shelf) -> None:
    for address in ("https://127.0.0.1/a", "https://[::1]/a", "https://localhost/a", "ssh://git@10.0.0.5/a"):
        for caller in (WRITER, ADMIN):
            with pytest.raises(Denied, match="code_git_private_hosts") as raised:
                shelf.call("code.index", caller=caller, source=address)
            assert raised.value.extras["field"] == "source"
    with pytest.raises(Rejected):
        shelf.call("code.index", caller=WRITER, source="https://127.1/a")
    assert shelf.call("code.index_status")["state"] == "none"
    assert shelf.call("code.index", source="https://127.0.0.1/a")["state"] == "waiting"
