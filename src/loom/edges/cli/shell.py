"""What commands share: the settings, and a way to call operations, here or over HTTP."""

import argparse
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from loom import config
from loom.access.caller import LOCAL, Transport
from loom.config import Settings
from loom.edges.cli.problem import MISUSED, Problem
from loom.edges.client.drivers import Loom
from loom.edges.http.lifecycle import Lifecycle
from loom.ops.dispatch import Dispatcher
from loom.ops.registry import Registry
from loom.storage.interface import StoreError
from loom.system.reindexing import Reindexed

Show = Callable[[str, int, int], None]
"""Told what is worked on, how many bytes are done, and how many there are."""


class App(Protocol):
    """A built server, as the command line uses it."""

    @property
    def dispatcher(self) -> Dispatcher:
        """Runs operations."""
        ...

    @property
    def asgi(self) -> ASGIApp:
        """Every route, for an ASGI server."""
        ...

    @property
    def lifecycle(self) -> Lifecycle:
        """Whether calls are served; shared with `asgi`."""
        ...

    def start(self) -> None:
        """Begin background work."""
        ...

    def work(self, stop: Event) -> None:
        """Do later work alone until `stop` is set."""
        ...

    def settle(self, show: Callable[[int], None] | None) -> int:
        """Do what is due of later work, telling `show` how many jobs are left; None does nothing. How many are left."""
        ...

    def close(self) -> None:
        """Finish background work and close the store."""
        ...


class Compose(Protocol):
    """The module that builds servers."""

    def build(self, settings: Settings, *, embeds: bool = True) -> App:
        """A server on the store of `settings.home`; not started. One that need not embed takes any store."""
        ...

    def registry(self) -> Registry:
        """Every operation, without a store."""
        ...

    def backup(self, settings: Settings, target: Path, show: Show) -> dict[str, int]:
        """Copy the embedded store to a folder; each file with its bytes. StoreError when it cannot be."""
        ...

    def reindex(self, settings: Settings, show: Show, *, anew: bool, may_switch: bool) -> Reindexed:
        """Make every vector anew with the embedder of the settings. StoreError, or ReindexFailed when it stopped."""
        ...

    def restore(self, settings: Settings, source: Path, show: Show) -> dict[str, int]:
        """Make the embedded store of a backup; each file with its bytes. StoreError when it cannot be."""
        ...


LoadCompose = Callable[[], ModuleType]
Call = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Runs an operation by name with its arguments and gives the answer."""


def add_common(parser: argparse.ArgumentParser) -> None:
    """The flags that every command has which calls operations."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument(
        "--url", default="", help="call this server (its token comes from LOOM_TOKEN) instead of the local store"
    )


def load_settings(home: Path | None = None, **flags: object) -> Settings:
    """The settings in force, with what the command's flags say on top. Flags that are None are left out."""
    try:
        settings = config.load(home=home)
    except config.BadSettings as error:
        raise Problem(str(error), MISUSED) from None
    given = {name: value for name, value in flags.items() if value is not None}
    settings = settings.model_copy(update=given)
    if settings.url and not settings.url.startswith(("http://", "https://")):
        raise Problem("the server's URL must begin with http:// or https://", MISUSED)
    return settings


def place_of(settings: Settings) -> str:
    """Where the store is, as a person may read it: no password."""
    url = settings.database_url.get_secret_value()
    if not url:
        return str(settings.home)
    try:
        parts = urlsplit(url)
    except ValueError:
        return "PostgreSQL"
    return f"PostgreSQL {parts.hostname or ''}{parts.path}" if parts.scheme else "PostgreSQL"


def composed(load: LoadCompose) -> Compose:
    """The composing module, loaded now."""
    return cast("Compose", load())


def build(load: LoadCompose, settings: Settings, *, embeds: bool = True) -> App:
    """A server in this process; a store that cannot be opened is a Problem.

    One that need not embed opens a store of another embedding model, too.
    """
    try:
        return composed(load).build(settings, embeds=embeds)
    except StoreError as error:
        raise Problem(f"{str(error).rstrip('.')}. The home folder is {settings.home} (LOOM_HOME).") from error


@dataclass(frozen=True, slots=True)
class Shell:
    """An open way to the store.

    Attributes:
        call: runs an operation.
        registry: the operations there are.
        place: where calls go: a URL, the home folder or a database.
        settle: does what calls left for later, as `App.settle` does; None where a server does it itself.
    """

    call: Call
    registry: Registry
    place: str
    settle: Callable[[Callable[[int], None] | None], int] | None = None


@contextmanager
def opened(load: LoadCompose, url: str = "", *, working: bool = False, embeds: bool = True) -> Generator[Shell]:
    """A Shell on the server at `url` or `LOOM_URL`, or else on the local store; closed at the end.

    With `working`, what calls leave for later is done meanwhile, on the local store too.

    The person at the terminal can read the store's files, so a local call is the
    local user's, whatever tokens there are.
    """
    settings = load_settings(url=url or None)
    if settings.url:
        # A person at a terminal is no agent, unless a setting or a flag names one.
        with Loom(settings.url, settings.token.get_secret_value() or None, agent=settings.agent) as client:
            yield Shell(client.call, composed(load).registry(), settings.url)
        return
    app = build(load, settings, embeds=embeds)
    dispatcher = app.dispatcher

    def call(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
        return dispatcher.call(name, LOCAL, Transport(request_id=uuid.uuid4().hex), args)

    if working:
        app.start()
    try:
        yield Shell(call, dispatcher.registry, place_of(settings), app.settle)
    finally:
        app.close()
