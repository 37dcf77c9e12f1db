"""A token has nothing fetched from the server's own network that the settings do not name."""

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from code_kit import CODE_ORG, Shelf, repository
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
