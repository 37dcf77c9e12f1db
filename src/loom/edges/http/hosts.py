"""Which Host and Origin headers are served, so that no web page can reach a local server by a name of its own.

A page on `evil.example` can point that name at 127.0.0.1 and then read a
server without tokens as if it were its own (DNS rebinding). Its requests carry
the name in `Host`, and its own address in `Origin`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from loom.errors import WrongHost, WrongOrigin

PLACE = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]@/]+)(?::[0-9]{1,5})?")
"""A host's name and, perhaps, a port."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
ANY = "*"


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names this server answers for.

    Attributes:
        names: further host names; `name` admits any port, `name:port` that one,
            `*` every host (for a server behind a proxy that checks itself).
        origins: origins of web pages elsewhere that may call, such as `https://app.example`.
    """

    names: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    @classmethod
    def of(cls, names: Iterable[str] = (), origins: Iterable[str] = ()) -> "Hosts":
        """From settings, letter case and a trailing slash disregarded."""
        return cls(frozenset(name.lower() for name in names), frozenset(o.lower().rstrip("/") for o in origins))

    def check(self, hosts: list[str], origins: list[str]) -> None:
        """Let a request pass by its Host and Origin headers, all of them.

        An Origin passes when it is the page's own server: an admitted host on
        the port of `Host`.

        Raises:
            WrongHost: none, several or an unknown Host.
            WrongOrigin: a web page of another origin sent it.
        """
        if len(hosts) != 1 or not self._admits(hosts[0].lower()):
            raise WrongHost("this server does not answer for that host; LOOM_ALLOWED_HOSTS names further ones")
        for origin in origins:
            if not self._same_server(origin.lower(), hosts[0].lower()):
                raise WrongOrigin("pages of this origin may not call this server; add it to the allowed origins")

    def _admits(self, host: str) -> bool:
        name = _name(host)
        return name in LOOPBACK or name in self.names or host in self.names or ANY in self.names

    def _same_server(self, origin: str, host: str) -> bool:
        return origin in self.origins or is_same_server(origin, host)


def is_same_server(origin: str, host: str) -> bool:
    """Whether a page of `origin` comes from the server that `host` names, both in lower case."""
    scheme, _, place = origin.partition("://")
    if scheme not in ("http", "https") or _port(place, scheme) != _port(host, scheme):
        return False
    return _name(place) == _name(host) or {_name(place), _name(host)} <= LOOPBACK


def _name(host: str) -> str:
    """The host without its port; all of it when it is not a name and a port, which no admitted name equals."""
    parts = PLACE.fullmatch(host)
    return parts[1] if parts else host


def _port(host: str, scheme: str) -> int | None:
    try:
        return urlsplit(f"{scheme}://{host}").port or {"http": 80, "https": 443}[scheme]
    except ValueError:
        return None
