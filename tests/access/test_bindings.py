"""A namespace bound to a repository: what it is called, and who is asked."""

import pytest

from loom.access import namespaces
from loom.access.namespaces import Binding, NamespaceKind, repository_key
from loom.storage.interface import Database

ORG = "o"


@pytest.mark.parametrize(
    ("spelled", "key"),
    [
        ("git@github.com:Acme/App.git", "acme/app"),
        ("https://github.com/acme/app", "acme/app"),
        ("https://user:secret@gitlab.com/a/b/c.git", "a/b/c"),
        ("ssh://git@host.org:22/acme/app.git/", "acme/app"),
        ("git@work:acme/app", "acme/app"),
        ("http://localhost:3000/a/b", "a/b"),
        ("github.com/acme/app", "acme/app"),
        ("acme/app", "acme/app"),
        ("App", "app"),
        ("app.js", "app.js"),
        ("acme/app.js", "acme/app.js"),
        ("file:///srv/x/app", "srv/x/app"),
        ("ünï/größe", "ünï/größe"),
        ("  ", ""),
        ("https://", ""),
    ],
)
def test_spellings_of_a_repository_meet(spelled: str, key: str) -> None:
    assert repository_key(spelled) == key


def test_a_key_of_a_key_is_itself() -> None:
    assert repository_key(repository_key("https://github.com/Acme/App.git")) == "acme/app"


def test_only_a_bound_namespace_of_kind_code_is_a_code_scope(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        kinds: dict[str, NamespaceKind] = {"c": "code", "t": "tracker", "m": "memory", "unbound": "code"}
        for name, kind in kinds.items():
            namespaces.touch(tx, name, tx.stamp(), kind)
        for name in ("c", "t", "m"):
            namespaces.bind(tx, name, "https://github.com/Acme/App.git")
        assert namespaces.code_scope(tx, "c") == Binding("c", "acme/app", "")
        assert [namespaces.code_scope(tx, name) for name in ("t", "m", "unbound", "none")] == [None] * 4


def test_the_trackers_of_a_repository_are_found_by_any_spelling(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        kinds: dict[str, NamespaceKind] = {"old": "tracker", "new": "tracker", "c": "code", "other": "tracker"}
        for name, kind in kinds.items():
            namespaces.touch(tx, name, tx.stamp(), kind)
            namespaces.bind(tx, name, "acme/other" if name == "other" else "acme/app")
        assert namespaces.of_repository(tx, "git@host.org:acme/app", "tracker") == ["new", "old"]
        assert namespaces.of_repository(tx, "acme/app", "tracker", most=1) == ["new"]
    with database.transaction("p", write=False) as tx:
        assert namespaces.of_repository(tx, "acme/app", "tracker") == []


def test_a_binding_is_replaced_and_goes_with_its_namespace(database: Database) -> None:
    with database.transaction(ORG, write=True) as tx:
        namespaces.touch(tx, "c", tx.stamp(), "code")
        namespaces.bind(tx, "c", "acme/app", "bugs")
        namespaces.bind(tx, "c", "acme/lib")
        assert namespaces.binding(tx, "c") == Binding("c", "acme/lib", "")
        namespaces.delete(tx, "c")
        assert namespaces.binding(tx, "c") is None
