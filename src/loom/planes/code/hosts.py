"""Which hosts a git address may lead to: what a token has fetched lies outside of the server's own network.

A name is looked up here and `git` is told what it stands for, so that it cannot come to stand for
another host in between (`http.curloptResolve`, which git has from 2.37 on; an older one passes over it, and is not
run). Redirects are not followed, for they lead where nobody looked.
"""

import ipaddress
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from types import MappingProxyType
from typing import Final, NamedTuple

from loom.planes.code.sources import SSH, SourceFailed

ADDRESSES_MAX: Final = 16
"""Addresses of one name that git is told."""

INSIDE: Final = (
    "the address's host is not known, or stands in the server's own network, where tokens have nothing fetched that "
    "the setting code_git_private_hosts does not name"
)
"""One text for both, so that no caller learns which names there are inside."""

PORTS: Final[Mapping[str, int]] = MappingProxyType({"https": 443, "ssh": 22})
PROXY_NAMES: Final = ("https_proxy", "HTTPS_PROXY")
NO_PROXY: Final[Mapping[str, str]] = MappingProxyType({"no_proxy": "", "NO_PROXY": ""})
NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""Where a network without IPv4 keeps the addresses of those that have no other."""

_URL: Final = re.compile(
    r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:[^@/]*@)?(?P<host>\[[^]]*\]|[^:/]*)(?::(?P<port>\d+))?"
)
_SHORT: Final = re.compile(r"^(?:[^@/:]*@)?(?P<host>[^:/]+):")
_NUMBER: Final = re.compile(r"^(?:[0-9]+|0[xX][0-9A-Fa-f]*)$")

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a name, for a port; OSError when there are none."""


class Host(NamedTuple):
    """The host that an address names, in lower case, and the port of it."""

    scheme: str
    name: str
    port: int

    @property
    def address(self) -> Address | None:
        """The address that it is, when it is no name."""
        try:
            return ipaddress.ip_address(self.name)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Care:
    """How `git` is run for one address.

    Attributes:
        words: settings, as words of its command line.
        environment: what its environment has besides.
        is_pinned: whether `git` has to go where the words say that a name stands, which an old one does not.
    """

    words: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(dict[str, str]()))
    is_pinned: bool = False


NO_CARE: Final = Care()


def host_of(address: str) -> Host | None:
    """The host of a git address that was checked; None for one of this machine's files."""
    match = _URL.match(address)
    if match is None:
        short = _SHORT.match(address)
        return None if short is None else Host("ssh", short["host"].lower(), PORTS["ssh"])
    scheme = match["scheme"].lower()
    if scheme not in PORTS:
        return None
    return Host(scheme, match["host"].strip("[]").lower(), int(match["port"] or PORTS[scheme]))


def is_plain(name: str) -> bool:
    """Whether a host is spelled in the one way that everybody reads alike: no `127.1`, no `0x7f000001`, no end dot."""
    last = name.rpartition(".")[2]
    if ":" not in name and (not last or _NUMBER.match(last) is None):
        return bool(last)
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def is_outside(address: Address) -> bool:
    """Whether an address is one of the whole internet's and no group's, what it may hold within counted too."""
    if isinstance(address, IPv6Address):
        within = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if within is None and address in NAT64:
            within = IPv4Address(int(address) & 0xFFFFFFFF)
        if within is not None:
            return is_outside(within)
        if address.is_site_local:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def named(host: Host, listed: Sequence[str]) -> bool:
    """Whether the list names the host itself, and not only a network that it stands in."""
    return host.name in listed


def permitted(address: Address, listed: Sequence[str]) -> bool:
    """Whether a token may have something fetched from an address."""
    return is_outside(address) or any(address in network for network in _networks(listed))


def refused(address: str, listed: Sequence[str]) -> bool:
    """Whether a git address is refused as it stands, without its name being looked up."""
    host = host_of(address)
    if host is None or named(host, listed):
        return False
    found = host.address
    if found is not None:
        return not permitted(found, listed)
    return host.name == "localhost" or host.name.endswith(".localhost")


def cared_for(address: str, listed: Sequence[str], resolve: Resolve, environment: Mapping[str, str]) -> Care:
    """How a token's address is fetched.

    Args:
        address: a git address that was checked.
        listed: hosts and networks inside that may be fetched from.
        resolve: looks names up.
        environment: of `git`; a proxy in it is what reaches names that are not known here.

    Raises:
        SourceFailed: its host is not known, or stands inside and is not listed.
    """
    host = host_of(address)
    careful = ("-c", "http.followRedirects=false")
    if host is None or named(host, listed):
        return Care(careful)
    if refused(address, listed):
        raise SourceFailed(INSIDE)
    if host.address is not None:
        return Care(careful)
    try:
        found = [ipaddress.ip_address(one.partition("%")[0]) for one in resolve(host.name, host.port)]
    except (OSError, ValueError):
        found = []
    if not found and host.scheme == "https" and any(environment.get(name) for name in PROXY_NAMES):
        return Care(careful, NO_PROXY)  # the proxy knows it, or nobody does
    if not found or not all(permitted(one, listed) for one in found):
        raise SourceFailed(INSIDE)
    return Care((*careful, *_pinned(host, found)), is_pinned=host.scheme == "https")


def _pinned(host: Host, found: Sequence[Address]) -> Sequence[str]:
    """What tells `git` where the host stands."""
    if host.scheme == "ssh":
        known_as = host.name if host.port == PORTS["ssh"] else f"[{host.name}]:{host.port}"
        options = f"-oHostName={found[0]} -oHostKeyAlias={shlex.quote(known_as)}"
        return ("-c", f"core.sshCommand={SSH} {options}")
    shown = ",".join(f"[{one}]" if one.version == 6 else str(one) for one in found[:ADDRESSES_MAX])  # noqa: PLR2004
    return ("-c", f"http.curloptResolve={host.name}:{host.port}:{shown}")


def _networks(listed: Sequence[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
    for one in listed:
        try:
            networks.append(ipaddress.ip_network(one))
        except ValueError:
            continue
    return networks
