"""A folder is read without leaving it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from code_kit import committed, git, repository, written

from loom.planes.code import files, folder
from loom.planes.code.folder import Folder
from loom.planes.code.sources import Entry, SourceFailed, Yard


def paths(root: Path, yard: Yard) -> list[str]:
    return [entry.path for entry in Folder(root, yard).listed().entries]


def test_what_gitignore_leaves_out(tmp_path: Path, yard: Yard) -> None:
    written(
        tmp_path / "r",
        {
            ".gitignore": "*.log\n!keep.log\nbuild/\n/top.py\n",
            "a.py": "",
            "top.py": "",
            "sub/top.py": "",
            "x.log": "",
            "keep.log": "",
            "build/made.py": "",
            "sub/build/made.py": "",
            "sub/.gitignore": "inner.py\n!x.log\n",
            "sub/inner.py": "",
            "sub/x.log": "",
            "node_modules/a/index.js": "",
            ".git/config": "",
        },
    )
    listing = Folder(tmp_path / "r", yard).listed()
    assert [entry.path for entry in listing.entries] == [
        ".gitignore",
        "a.py",
        "keep.log",
        "sub/.gitignore",
        "sub/top.py",
        "sub/x.log",
    ]
    assert listing.skipped == {files.IGNORED: 3}


def test_a_part_of_a_repository_obeys_the_patterns_above_it(tmp_path: Path, yard: Yard) -> None:
    repository(
        tmp_path / "r", {".gitignore": "*.tmp\n/part/gone.py\n", "part/a.py": "", "part/gone.py": "", "part/b.tmp": ""}
    )
    written(tmp_path / "r", {".git/info/exclude": "private.py\n", "part/private.py": ""})
    assert paths(tmp_path / "r" / "part", yard) == ["a.py"]


def test_a_folder_that_the_repository_around_it_ignores_is_no_part_of_it(tmp_path: Path, yard: Yard) -> None:
    root = repository(tmp_path / "r", {".gitignore": "/vendor/*\n", "a.py": ""})
    inner = written(root / "vendor" / "lib", {"b.py": "", "c.log": "", ".gitignore": "*.log\n"})
    listing = Folder(inner, yard).listed()
    assert [entry.path for entry in listing.entries] == [".gitignore", "b.py"]
    assert listing.commit_id == ""


def test_the_commit_that_is_checked_out(tmp_path: Path, yard: Yard) -> None:
    root = repository(tmp_path / "r", {"a.py": "x = 1\n"})
    assert Folder(root, yard).listed().commit_id == git(root, "rev-parse", "HEAD")
    assert Folder(written(tmp_path / "plain", {"a.py": ""}), yard).listed().commit_id == ""


def test_nothing_of_a_repository_is_run(tmp_path: Path, yard: Yard) -> None:
    root = repository(tmp_path / "r", {"a.py": "x = 1\n"})
    trap = tmp_path / "trap"
    for name in ("fsmonitor", "hook"):
        script = written(tmp_path, {name: f"#!/bin/sh\necho run > {trap}\n"}) / name
        script.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(tmp_path / "fsmonitor"))
    git(root, "config", "core.hooksPath", str(tmp_path))
    git(root, "config", "core.pager", str(tmp_path / "hook"))
    Folder(root, yard).listed()
    assert not trap.exists()


def test_links_are_not_followed(tmp_path: Path, yard: Yard) -> None:
    outside = written(tmp_path / "outside", {"secret.py": "PASSWORD = 1\n"})
    root = written(tmp_path / "r", {"a.py": "", "sub/b.py": ""})
    (root / "link.py").symlink_to(outside / "secret.py")
    (root / "folder").symlink_to(outside)
    (root / "sub" / "loop").symlink_to(root)
    listing = Folder(root, yard).listed()
    assert [entry.path for entry in listing.entries] == ["a.py", "sub/b.py"]
    assert listing.skipped == {files.LINK: 3}


def test_a_folder_that_became_a_link_is_not_read_through(tmp_path: Path, yard: Yard) -> None:
    outside = written(tmp_path / "outside", {"b.py": "PASSWORD = 1\n"})
    root = written(tmp_path / "r", {"sub/b.py": "x = 1\n", "c.py": "y = 1\n"})
    source = Folder(root, yard)
    entries = source.listed().entries
    (root / "sub" / "b.py").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)
    (root / "c.py").unlink()
    (root / "c.py").symlink_to(outside / "b.py")
    assert [content for _, content in source.read(entries)] == [None, None]
    odd = ["../outside/b.py", f"{outside}/b.py", "a\x00b", "./c.py", ""]
    assert [content for _, content in source.read([Entry(path, 1, "x") for path in odd])] == [None] * 5


def test_what_is_no_regular_file_is_left_out(tmp_path: Path, yard: Yard) -> None:
    root = written(tmp_path / "r", {"a.py": ""})
    os.mkfifo(root / "pipe.py")
    assert paths(root, yard) == ["a.py"]
    assert [content for _, content in Folder(root, yard).read([Entry("pipe.py", 1, "x")])] == [None]


@pytest.mark.parametrize("bound", ["files_max", "bytes_max", "names_max"])
def test_a_huge_tree_is_refused(tmp_path: Path, yard: Yard, bound: str) -> None:
    root = written(tmp_path / "r", {f"f{number}.py": "x" for number in range(12)})
    assert len(Folder(root, replace(yard, **{bound: 12})).listed().entries) == 12
    with pytest.raises(SourceFailed, match="too large"):
        Folder(root, replace(yard, **{bound: 11})).listed()


def test_a_deep_tree_ends_somewhere(tmp_path: Path, yard: Yard) -> None:
    deep = "/".join(["d"] * (folder.DEPTH_MAX + 10))
    root = written(tmp_path / "r", {"a.py": "", f"{deep}/b.py": ""})
    assert paths(root, yard) == ["a.py"]


def test_a_folder_that_went_away(tmp_path: Path, yard: Yard) -> None:
    with pytest.raises(SourceFailed, match="not there"):
        Folder(tmp_path / "gone", yard).listed()


def test_the_digest_follows_the_content_and_not_the_clock(tmp_path: Path, yard: Yard) -> None:
    root = written(tmp_path / "r", {"a.py": "one = 1\n"})
    before = Folder(root, yard).listed().entries[0]
    times = (root / "a.py").stat()
    (root / "a.py").write_text("two = 2\n")
    os.utime(root / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert Folder(root, yard).listed().entries[0].digest != before.digest


def test_committing_is_no_change_of_a_folder(tmp_path: Path, yard: Yard) -> None:
    root = repository(tmp_path / "r", {"a.py": "one = 1\n"})
    before = Folder(root, yard).listed()
    written(root, {"b.py": "two = 2\n"})
    committed(root)
    after = Folder(root, yard).listed()
    assert after.commit_id != before.commit_id
    assert before.entries[0] == after.entries[0]
