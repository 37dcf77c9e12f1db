"""`loom doctor`: what is wrong on this machine, if anything."""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from loom.config import Settings, git_environment, is_loopback
from loom.edges.cli.launch import answers, server_url
from loom.edges.cli.output import show_json, show_table
from loom.edges.cli.problem import FAILED, Problem
from loom.edges.cli.serve import bound, has_tokens
from loom.edges.cli.shell import App, LoadCompose, build, load_settings, place_of
from loom.edges.cli.version import versions
from loom.errors import LoomError
from loom.models.interface import EmbedderFailed
from loom.models.writer import Writer
from loom.planes.code import git
from loom.planes.code.sources import SourceFailed
from loom.storage.interface import StoreError

FREE_BYTES_MIN = 1024**3
MODEL_TIMEOUT_S = 60.0
PYTHON_MIN = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: what was looked at.
        ok: whether it is as it should be.
        found: what was found, and what to do when it is wrong.
    """

    check: str
    ok: bool
    found: str


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def run(args: argparse.Namespace, compose: LoadCompose) -> int:
    """Look at everything; exit code 1 when something is wrong."""
    settings = load_settings()
    findings = list(examined(settings, compose))
    if args.json:
        show_json({"ok": all(each.ok for each in findings), "checks": [asdict(each) for each in findings]})
    else:
        rows = [{"check": each.check, "": "ok" if each.ok else "WRONG", "found": each.found} for each in findings]
        show_table(rows, ("check", "", "found"))
    return 0 if all(each.ok for each in findings) else FAILED


def examined(settings: Settings, compose: LoadCompose) -> Iterator[Finding]:
    """Every finding, the cheap ones first."""
    parts = versions()
    yield Finding("python", sys.version_info[:2] >= PYTHON_MIN, parts["python"])
    yield disk(settings.home)
    yield port(settings)
    try:
        app = build(compose, settings)
    except (Problem, LoomError) as error:
        yield Finding("store", ok=False, found=str(error))
    else:
        try:
            yield store(app, place_of(settings))
            yield model(app)
            yield sent(settings)
            yield writer(app.dispatcher.writer)
            yield tokens(app, settings)
            yield code(git_environment(), guarded=has_tokens(app))
        finally:
            app.close()
    yield Finding("versions", ok=True, found=", ".join(f"{part} {version}" for part, version in parts.items()))


def disk(home: Path) -> Finding:
    """Whether the home folder's disk has room."""
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    free_bytes = shutil.disk_usage(there).free
    return Finding("disk", free_bytes >= FREE_BYTES_MIN, f"{free_bytes / 1024**3:.1f} GiB free for {home}")


def port(settings: Settings) -> Finding:
    """Whether the port is free, or Loom's own."""
    url = server_url(settings)
    if answers(url, "/healthz"):
        ready = answers(url)
        return Finding("port", ready, f"a server answers at {url}" + ("" if ready else ", and is not ready"))
    try:
        bound(settings.host, settings.port).close()
    except Problem as error:
        return Finding("port", ok=False, found=error.message)
    return Finding("port", ok=True, found=f"{settings.port} on {settings.host} is free; no server runs")


def store(app: App, place: str) -> Finding:
    """Whether the store is sound."""
    wrong = _tried(lambda: list(app.dispatcher.database.check()))
    return Finding("store", not wrong, "; ".join(wrong) or f"sound, in {place}")


def model(app: App) -> Finding:
    """Whether the embedder loads and gives the vectors on record, and what the store's vectors are of."""
    embedder = app.dispatcher.embedder
    space = embedder.space
    named = f"{space.model} from {space.source}, {space.dimension} dimensions"
    try:
        embedder.embed_query("Does the model answer?", MODEL_TIMEOUT_S)
    except EmbedderFailed as error:
        return Finding("model", ok=False, found=f"{named}: {error}; search by words still works")
    return Finding("model", ok=True, found=named)


def sent(settings: Settings) -> Finding:
    """Where texts are sent to become vectors."""
    if settings.embedder != "openai":
        return Finding("embedding", ok=True, found="on this machine; no text leaves it for that")
    found = f"every text and question goes to {settings.embedder_model} at {settings.embedder_url}"
    return Finding("embedding", ok=True, found=found + unencrypted(settings.embedder_url))


def unencrypted(url: str) -> str:
    """A warning to add when others can read on the way what is sent to `url`; empty when they cannot."""
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        return ", unencrypted: use https, unless the network between is yours"
    return ""


def writer(language_model: Writer | None) -> Finding:
    """Where memories and messages would be sent; nothing is sent to find out."""
    if language_model is None:
        return Finding("language model", ok=True, found="none is configured; no text leaves this server")
    found = f"memories and messages go to {language_model.model} at {language_model.endpoint}"
    return Finding("language model", ok=True, found=found + unencrypted(language_model.endpoint))


def tokens(app: App, settings: Settings) -> Finding:
    """Whether an address that others can reach is guarded."""
    guarded = has_tokens(app)
    if guarded or is_loopback(settings.host):
        return Finding("tokens", ok=True, found="calls need one" if guarded else "none: a single user on this machine")
    return Finding("tokens", ok=False, found=f"none, and {settings.host} is open to others: loom token mint NAME")


def code(environment: Mapping[str, str], *, guarded: bool) -> Finding:
    """Whether git can be kept to where a token's address was looked up; callers without one go anywhere."""
    since = ".".join(map(str, git.PINS_SINCE))
    try:
        version = git.version(environment)
    except SourceFailed:
        return Finding("git", ok=True, found="not installed; code is indexed from folders alone")
    shown = "does not say its version" if version is None else ".".join(map(str, version))
    if version is not None and version >= git.PINS_SINCE:
        return Finding("git", ok=True, found=shown)
    found = f"{shown}; for tokens no https address is fetched by its name: update git to {since} or later"
    return Finding("git", ok=not guarded, found=found)


def _tried(work: Callable[[], list[str]]) -> list[str]:
    try:
        return work()
    except StoreError as error:
        return [str(error)]
