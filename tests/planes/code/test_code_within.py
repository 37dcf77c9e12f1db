"""A token has only those folders of the server indexed that the settings open, whatever leads out of them."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from code_kit import CODE_ORG, SHOP, Shelf, git, repository, written

from fakes import LIMITS, CoreOf
from loom.access.caller import LOCAL, Caller, Role
from loom.errors import Conflict, Denied, Rejected
from loom.ops.spec import Prepare
from loom.planes import code
from loom.planes.code import store, within
from loom.planes.code.folder import Folder
from loom.planes.code.ops_index import IndexRequest
from loom.planes.code.sources import SourceFailed, Yard
from loom.system import transfer

ADMIN = Caller("boss", Role.ADMIN, {"org": CODE_ORG})
WRITER = Caller("token", Role.WRITER, {"org": CODE_ORG})
SECRET = {"secret.py": "PASSWORD = 1\n"}

OpenShelf = Callable[..., Shelf]


@pytest.fixture
def opened(tmp_path: Path) -> Path:
    """The folder that is open to tokens."""
    return written(tmp_path / "open", {"app/a.py": "def one():\n    pass\n"})


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return repository(tmp_path / "outside", SECRET)


@pytest.fixture
def open_shelf(core_of: CoreOf, yard: Yard, opened: Path) -> OpenShelf:
    """A shelf on which tokens have these folders indexed, by default the open one; the job may have others."""

    def make(namespace: str = "app", folders: tuple[Path, ...] | None = None, asked: tuple[Path, ...] = ()) -> Shelf:
        read = (opened,) if folders is None else folders
        every = [*code.OPS, *transfer.ops([code.CARGO])]
        core = core_of(every, code.jobs(replace(yard, folders=read)))
        limits = replace(LIMITS, code_folders=asked or read)
        return Shelf(replace(core, dispatcher=replace(core.dispatcher, limits=limits)), namespace)

    return make


def test_a_token_indexes_what_is_open(open_shelf: OpenShelf, opened: Path) -> None:
    shelf = open_shelf()
    assert shelf.index(opened / "app", caller=ADMIN)["files_total"] == 1
    written(opened, {"app/b.py": "def two():\n    pass\n"})
    assert shelf.index("", caller=ADMIN)["files_total"] == 2
    repository(opened / "cloned", SHOP)
    assert open_shelf("cloned").index(f"file://{opened}/cloned", caller=ADMIN)["state"] == "ready"
    with pytest.raises(Denied, match="admins only"):
        shelf.call("code.index", caller=WRITER, source=str(opened / "app"))


def test_without_the_setting_tokens_index_no_folder(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    shelf = open_shelf(folders=())
    for source in (str(opened / "app"), f"file://{outside}"):
        with pytest.raises(Denied, match=r"code_folders \(LOOM_CODE_FOLDERS\)") as raised:
            shelf.call("code.index", caller=ADMIN, source=source)
        assert raised.value.extras["field"] == "source"
    assert shelf.index(outside, caller=LOCAL)["state"] == "ready"
    assert open_shelf("other", folders=()).index(f"file://{outside}", caller=LOCAL)["state"] == "ready"


def test_nothing_is_told_of_what_lies_outside(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    (opened / "way").symlink_to(outside)
    (opened / "lost").symlink_to(outside / "nothing")
    (opened / "round").symlink_to(opened / "round")
    shelf = open_shelf()
    spelled = f"file://{opened}/%2e%2e/outside"
    sources = [outside, outside / "nothing", opened / ".." / "outside", opened / "way", opened / "lost"]
    addresses = [f"file://{outside}", f"file://{opened}/../outside", f"file://{opened}/way", spelled]
    messages: set[str] = set()
    for source in [*map(str, sources), *addresses, str(opened / "round")]:
        with pytest.raises(Denied) as raised:
            shelf.call("code.index", caller=ADMIN, source=source)
        messages.add(raised.value.message)
    assert len(messages) == 1
    assert "outside of the folders" in messages.pop()
    with pytest.raises(Rejected, match="no such folder"):
        shelf.call("code.index", caller=ADMIN, source=str(opened / "nothing"))
    assert shelf.call("code.index_status")["state"] == "none"


def test_a_folder_that_is_opened_through_a_link(open_shelf: OpenShelf, opened: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(opened)
    shelf = open_shelf(folders=(tmp_path / "way",))
    assert shelf.index(opened / "app", caller=ADMIN)["state"] == "ready"


def test_a_token_does_not_index_again_what_the_local_user_did(open_shelf: OpenShelf, outside: Path) -> None:
    shelf = open_shelf()
    assert shelf.index(outside)["state"] == "ready"
    with pytest.raises(Denied):
        shelf.call("code.index", caller=ADMIN)
    assert shelf.index("")["state"] == "ready"


def test_the_job_looks_again(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    """What was open when it was asked for, and is closed or a link by then, is not read."""
    narrowed = open_shelf("narrowed", (opened / "app",), (opened, outside))
    assert "outside of" in narrowed.index(outside, caller=ADMIN)["problem"]
    shelf = open_shelf("swapped")
    shelf.call("code.index", caller=ADMIN, source=str(opened / "app"))
    (opened / "app").rename(opened / "old")
    (opened / "app").symlink_to(outside)
    status = shelf.finish()
    assert (status["state"], status["files_total"]) == ("failed", 0)


def test_a_folder_that_becomes_a_link_is_not_read_for_anybody(shelf: Shelf, shop: Path, outside: Path) -> None:
    shelf.call("code.index", source=str(shop))
    shop.rename(shop.with_name("old"))
    shop.symlink_to(outside)
    status = shelf.finish()
    assert (status["state"], status["files_total"]) == ("failed", 0)
    assert "has become a link" in status["problem"]


def test_a_repository_changed_while_it_was_asked_for_again(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    """What was looked at before the write is what is written."""
    shelf = open_shelf()
    shelf.index(opened / "app", caller=ADMIN)
    registry = shelf.core.dispatcher.registry
    op = registry.named("code.index")
    assert op.prepare is not None
    looked_at = op.prepare

    def late(prepare: Prepare, request: IndexRequest) -> object:
        found = looked_at(prepare, request)
        with shelf.core.database.transaction(CODE_ORG, write=True) as tx:
            held = store.of_namespace(tx, "app")
            assert held is not None
            store.put(tx, replace(held, source=str(outside)))
        return found

    dispatcher = replace(shelf.core.dispatcher, registry=type(registry)([replace(op, prepare=late)]))
    changed = Shelf(replace(shelf.core, dispatcher=dispatcher), "app")
    with pytest.raises(Conflict, match="changed meanwhile"):
        changed.call("code.index", caller=ADMIN)


def linked_folder(repo: Path, outside: Path) -> None:
    (repo / ".git").rename(repo / "kept")
    (repo / ".git").symlink_to(outside / ".git")


def pointer(repo: Path, outside: Path) -> None:
    (repo / ".git").rename(repo / "kept")
    (repo / ".git").write_text(f"gitdir: {os.path.relpath(outside / '.git', repo)}\n")


def linked_objects(repo: Path, outside: Path) -> None:
    (repo / ".git" / "objects").rename(repo / "kept")
    (repo / ".git" / "objects").symlink_to(outside / ".git" / "objects")


def linked_ref(repo: Path, outside: Path) -> None:
    (repo / ".git" / "refs" / "heads" / "other").symlink_to(outside / ".git" / "HEAD")


def alternates(repo: Path, outside: Path) -> None:
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"# one\n{outside}/.git/objects\n")


def quoted_alternates(repo: Path, outside: Path) -> None:
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f'"{outside}/.git/objects"\n')


def long_alternates(repo: Path, outside: Path) -> None:
    lines = f"{repo}/.git/objects\n" * 1000 + f"{outside}/.git/objects\n"
    (repo / ".git" / "objects" / "info" / "alternates").write_text(lines)


def alternates_of_alternates(repo: Path, outside: Path) -> None:
    between = repo.with_name("between")
    (between / "info").mkdir(parents=True)
    (between / "info" / "alternates").write_text(f"{outside}/.git/objects\n")
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"{between}\n")


def link_in_alternates(repo: Path, outside: Path) -> None:
    between = repo.with_name("between")
    between.mkdir()
    (between / "pack").symlink_to(outside / ".git" / "objects")
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"{between}\n")


def space_at_the_end(repo: Path, outside: Path) -> None:
    repo.with_name("way ").symlink_to(outside / ".git")
    (repo / ".git").rename(repo.with_name("kept"))
    (repo / ".git").write_text(f"gitdir: {repo.with_name('way ')}\n")


def common_folder(repo: Path, outside: Path) -> None:
    (repo / ".git" / "commondir").write_text(f"{outside}/.git\n")


def bare_beside(repo: Path, outside: Path) -> None:
    (repo / ".git").rename(repo / "kept")
    repo.with_name(f"{repo.name}.git").symlink_to(outside / ".git")


WAYS_OUT = (
    linked_folder,
    pointer,
    linked_objects,
    linked_ref,
    alternates,
    quoted_alternates,
    long_alternates,
    alternates_of_alternates,
    space_at_the_end,
    link_in_alternates,
    common_folder,
    bare_beside,
)


@pytest.mark.parametrize("way_out", WAYS_OUT)
def test_a_repository_that_leads_out(way_out: Callable[[Path, Path], None], opened: Path, outside: Path) -> None:
    repo = repository(opened / "repo", SHOP)
    within.check_repository(repo, (opened,))
    way_out(repo, outside)
    with pytest.raises(SourceFailed, match="leads outside"):
        within.check_repository(repo, (opened,))
    within.check_repository(repo, (Path("/"),))


@pytest.mark.parametrize("name", ["commondir", "config", "info/exclude", "HEAD"])
def test_a_pipe_in_a_repository_holds_up_nobody(name: str, open_shelf: OpenShelf, opened: Path) -> None:
    repo = repository(opened / "repo", SHOP)
    (repo / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repo / ".git" / name)
    for namespace, source in (("folder", str(repo)), ("address", f"file://{repo}")):
        assert open_shelf(namespace).index(source, caller=ADMIN)["state"] == "failed"


def test_the_head_of_a_repository_elsewhere_is_not_told(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    (opened / "app").mkdir(exist_ok=True)
    (opened / "app" / ".git").write_text(f"gitdir: {outside}/.git\n")
    assert open_shelf("shop").index(str(opened / "app"), caller=ADMIN)["state"] == "failed"


def test_a_clone_that_shares_objects_within(opened: Path) -> None:
    repo = repository(opened / "repo", SHOP)
    git(opened, "clone", "--quiet", "--shared", str(repo), "shared")
    git(repo, "worktree", "add", "--quiet", str(opened / "tree"))
    for name in ("shared", "tree"):
        within.check_repository(opened / name, (opened,))


def test_the_job_does_not_follow_a_repository_out(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    repo = repository(opened / "repo", SHOP)
    pointer(repo, outside)
    shelf = open_shelf("repo")
    status = shelf.index(f"file://{repo}", caller=ADMIN)
    assert (status["state"], status["files_total"]) == ("failed", 0)
    assert "leads outside" in status["problem"]
    assert open_shelf("local").index(f"file://{repo}")["state"] == "ready"


def test_an_import_of_an_index_under_way_opens_no_folder(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    """Its line names a folder that nobody asked this server for."""
    shelf = open_shelf("a")
    shelf.call("code.index", source=str(opened / "app"))
    (line,) = [one for one in shelf.call("store.export")["lines"] if one["kind"] == "repository"]
    asked = {**line, "state": "waiting", "name": "outside"}
    for number, caller, state in ((1, ADMIN, "failed"), (2, LOCAL, "ready")):
        other = Shelf(shelf.core, f"n{number}")
        ids = {name: str(int(line[name]) + number) for name in ("repository_id", "generation")}
        moved = {**asked, **ids, "namespace": other.namespace, "source": str(outside)}
        answer = other.call("store.import", caller=caller, lines=[moved])
        assert answer["imported"] == 1, answer
        status = other.finish()
        assert (status["state"], bool(status["files_total"])) == (state, caller is LOCAL), status


def commit_of(shelf: Shelf, source: Path, caller: Caller) -> tuple[int, str]:
    """How many files are indexed, and of which commit."""
    status = shelf.index(source, caller=caller)
    assert status["state"] == "ready", status
    return status["files_total"], status["commit_id"]


@pytest.fixture
def part(tmp_path: Path) -> tuple[Path, Path]:
    """A repository and a folder in it that is open to tokens, with what each of them ignores."""
    files = {".gitignore": "*.py\n", "open/.gitignore": "gone.txt\n", "open/app/a.py": "", "open/app/gone.txt": ""}
    whole = repository(tmp_path / "whole", files)
    written(whole, {".git/info/exclude": "b.txt\n", "open/app/b.txt": "b\n"})
    return whole, whole / "open"


@pytest.mark.parametrize("is_linked", [False, True])
def test_what_lies_above_the_open_folder_is_not_read(
    is_linked: bool, open_shelf: OpenShelf, part: tuple[Path, Path], tmp_path: Path
) -> None:
    """Neither its `.gitignore`, nor its `info/exclude`, nor its commit; what the open folder itself says counts."""
    whole, opened = part
    if is_linked:
        (tmp_path / "way").symlink_to(opened)
        opened = tmp_path / "way"
    shelf = open_shelf(folders=(opened,))
    assert commit_of(shelf, opened / "app", ADMIN) == (2, "")
    assert commit_of(open_shelf("whole", folders=(opened,)), opened, ADMIN) == (3, "")
    local = open_shelf("local", folders=(opened,))
    assert commit_of(local, opened / "app", LOCAL) == (0, git(whole, "rev-parse", "HEAD"))
    everything = open_shelf("more", folders=(opened, whole))
    assert commit_of(everything, opened / "app", ADMIN) == (0, git(whole, "rev-parse", "HEAD"))


def test_a_part_of_an_open_repository_is_read_as_that(open_shelf: OpenShelf, opened: Path) -> None:
    """Reading stops at the repository's top, though more is open."""
    written(opened, {".gitignore": "*.py\n"})
    repo = repository(opened / "repo", {".gitignore": "*.txt\n", "part/a.py": "", "part/b.txt": ""})
    assert commit_of(open_shelf(), repo / "part", ADMIN) == (1, git(repo, "rev-parse", "HEAD"))
    worktree = opened / "tree"
    git(repo, "worktree", "add", "--quiet", str(worktree))
    assert commit_of(open_shelf("tree"), worktree / "part", ADMIN) == (1, git(repo, "rev-parse", "HEAD"))


def test_a_link_above_is_not_followed_out(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    written(outside, {"ignored": "*.py\n", "exclude": "*.py\n"})
    (opened / ".gitignore").symlink_to(outside / "ignored")
    assert commit_of(open_shelf(), opened / "app", ADMIN) == (1, "")
    repo = repository(opened / "repo", {"part/a.py": ""})
    (repo / ".gitignore").symlink_to(outside / "ignored")
    assert commit_of(open_shelf("part"), repo / "part", ADMIN)[0] == 1
    (repo / ".git" / "info" / "exclude").unlink()
    (repo / ".git" / "info").rmdir()
    (repo / ".git" / "info").symlink_to(outside)
    assert "leads outside" in open_shelf("led").index(repo / "part", caller=ADMIN)["problem"]
    folder = Folder(repo / "part", Yard(opened / "yard", {}), (opened,))
    assert [entry.path for entry in folder.listed().entries] == ["a.py"]
    assert commit_of(open_shelf("local"), repo / "part", LOCAL)[0] == 0


@pytest.mark.parametrize("way_out", [linked_folder, pointer, alternates, common_folder])
def test_a_part_of_a_repository_that_leads_out(
    way_out: Callable[[Path, Path], None], open_shelf: OpenShelf, opened: Path, outside: Path
) -> None:
    repo = repository(opened / "repo", {"part/a.py": ""})
    way_out(repo, outside)
    status = open_shelf().index(repo / "part", caller=ADMIN)
    assert (status["state"], status["commit_id"]) == ("failed", "")
    assert "leads outside" in status["problem"]


def test_a_folder_made_up_as_a_repository_tells_no_commit(open_shelf: OpenShelf, opened: Path, outside: Path) -> None:
    """Git takes any folder with these names in it for a repository, and looks for one in every folder above."""
    made_up = written(opened / "made", {"HEAD": "ref: refs/heads/main\n", "commondir": f"{outside}/.git\n"})
    written(made_up, {"objects/x": "", "refs/x": "", "part/a.py": ""})
    assert commit_of(open_shelf(), made_up / "part", ADMIN) == (1, "")
