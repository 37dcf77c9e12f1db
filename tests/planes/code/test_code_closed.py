"""What of the server's own disk is indexed by nobody, or by admins alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from code_kit import CODE_ORG, SHOP, Shelf, git, repository, written

from fakes import LIMITS, CoreOf
from loom.access.caller import Caller, Role
from loom.errors import Denied, NotFound, Rejected
from loom.planes import code
from loom.planes.code.sources import SYSTEM_FOLDERS, Yard

WRITER = Caller("token", Role.WRITER, {"org": CODE_ORG})


def test_a_local_repository_is_indexed_anew_by_admins_only(shelf: Shelf, tmp_path: Path) -> None:
    origin = repository(tmp_path / "origin", SHOP)
    git(origin, "branch", "hidden")
    assert shelf.index(f"file://{origin}")["state"] == "ready"
    for revision in ("", "hidden"):
        with pytest.raises(Denied):
            shelf.call("code.index", caller=WRITER, revision=revision)


def test_the_store_and_the_system_are_never_read(core_of: CoreOf, tmp_path: Path, yard: Yard) -> None:
    home = repository(tmp_path / "home", {"loom.toml": "database_url = 'hunter2'\n", "inner/a.py": "inner = 1\n"})
    written(tmp_path, {"b.py": "outer = 1\n"})
    (tmp_path / "way").symlink_to(home)
    closed = replace(yard, closed=(*yard.closed, home.resolve()))
    core = core_of(code.OPS, code.jobs(closed))
    spelled = str(home).replace("/home", "/%68ome")
    sources = [home, home / "inner", tmp_path / "way", f"file://{home}", f"file://{tmp_path}/way", f"file://{spelled}"]
    for number, source in enumerate(sources):
        status = Shelf(core, f"n{number}").index(source)
        assert (status["state"], status["files_total"]) == ("failed", 0), source
        assert "never read" in status["problem"]
    around = Shelf(core, "around")
    assert around.index(tmp_path)["state"] == "ready"
    assert around.call("code.read", path="b.py")["text"] == "outer = 1"
    with pytest.raises(NotFound):
        around.call("code.read", path="home/loom.toml")


def test_a_folder_that_is_never_read_is_refused_when_it_is_asked_for(core_of: CoreOf, tmp_path: Path) -> None:
    home = repository(tmp_path / "home", {"inner/a.py": "inner = 1\n"})
    (tmp_path / "way").symlink_to(home)
    core = core_of(code.OPS)
    closed = replace(LIMITS, closed_folders=(home.resolve(),))
    shelf = Shelf(replace(core, dispatcher=replace(core.dispatcher, limits=closed)))
    spelled = str(home).replace("/home", "/%68ome")
    sources = [home, home / "inner", tmp_path / "way", f"file://{home}", f"file://{tmp_path}/way", f"file://{spelled}"]
    for source in [*sources, *(one for one in SYSTEM_FOLDERS if one.is_dir())]:
        with pytest.raises(Rejected) as raised:
            shelf.call("code.index", source=str(source))
        assert raised.value.extras["field"] == "source"
        assert "never read" in raised.value.message
    assert shelf.call("code.index_status")["state"] == "none"
