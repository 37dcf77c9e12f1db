"""code.search, code.symbol, code.callers and code.read."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from code_kit import CODE_ORG, Shelf, ShelfOf, written
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loom.access.caller import Caller, ReadScope, Role
from loom.errors import Denied, NotFound, Rejected

READS: Mapping[str, Mapping[str, Any]] = {
    "code.search": {"query": "basket"},
    "code.symbol": {"name": "Basket"},
    "code.callers": {"name": "with_tax"},
    "code.read": {"path": "shop/prices.py"},
}


def test_a_name_comes_first(indexed: Shelf) -> None:
    for query in ("with_tax", "WITH_TAX", "with_tax()", "Basket.total", "shop/prices.Basket.total", "Basket::total"):
        hit = indexed.call("code.search", query=query)["results"][0]
        assert hit["name"] == query.lower().removesuffix("()").split(".")[-1].split("::")[-1], query
        assert "name" in hit["matched"]


def test_identifiers_are_found_split_and_whole(shelf: Shelf, tmp_path: Path) -> None:
    root = written(
        tmp_path / "r",
        {"a.py": "def parseHTTPHeader(): pass\n", "b.py": "def read_user_id(): pass\n", "c.py": "def other(): pass\n"},
    )
    shelf.index(root, vectors=False)
    assert shelf.names("http header")[0] == "parseHTTPHeader"
    assert shelf.names("user id")[0] == "read_user_id"
    assert shelf.names("call read_user_id here")[0] == "read_user_id"


def test_words_of_the_documentation_and_the_body(indexed: Shelf) -> None:
    assert indexed.names("net amount tax")[0] == "with_tax"
    assert indexed.names("the customer hands over the money")[0] == "pay"
    assert indexed.names("sweeping the warehouse floor")[0] == "tools/run.sh"


def test_filters(indexed: Shelf) -> None:
    assert set(indexed.names("amount", kinds=["class"])) == {"Basket"}
    assert "tools/run.sh" in indexed.names("warehouse")
    assert "tools/run.sh" not in indexed.names("warehouse", languages=["python"])
    found = indexed.call("code.search", query="amount", path_prefix="shop/check")["results"]
    assert {hit["path"] for hit in found} == {"shop/checkout.py"}
    assert len(indexed.names("amount", top_k=1)) == 1


@pytest.mark.parametrize(
    "query", ['"', "a AND NOT b", "x*", "(", "漢字", "--", "name:x", "'; DROP TABLE code_symbol", "🙂", "a" * 20_000]
)
def test_any_text_is_data(indexed: Shelf, query: str) -> None:
    indexed.call("code.search", query=query)
    indexed.call("code.symbol", name=query[:500])


@pytest.mark.parametrize(
    ("op", "args", "field"),
    [
        ("code.search", {"query": " \n"}, "query"),
        ("code.search", {"query": "x", "top_k": 0}, "top_k"),
        ("code.search", {"query": "x", "kinds": ["poem"]}, "kinds"),
        ("code.search", {"query": "x", "languages": ["cobol"]}, "languages"),
        ("code.search", {"query": "x", "path_prefix": "a\nb"}, "path_prefix"),
        ("code.symbol", {}, "name"),
        ("code.symbol", {"name": "x" * 600}, "name"),
        ("code.symbol", {"symbol_id": "sym_x"}, "symbol_id"),
        ("code.symbol", {"symbol_id": "nothing"}, "symbol_id"),
        ("code.callers", {"name": "x", "depth": 4}, "depth"),
        ("code.callers", {"name": "x", "limit": 201}, "limit"),
        ("code.read", {"path": ""}, "path"),
        ("code.read", {"path": "shop/prices.py", "start_line": 0}, "start_line"),
        ("code.read", {"path": "shop/prices.py", "start_line": 5, "end_line": 4}, "end_line"),
    ],
)
def test_bad_input(indexed: Shelf, op: str, args: dict[str, Any], field: str) -> None:
    with pytest.raises(Rejected) as refused:
        indexed.call(op, **args)
    assert field in str(refused.value.extras["field"])


def test_a_symbol_whole(indexed: Shelf) -> None:
    answer = indexed.call("code.symbol", name="Basket.total")
    assert (answer["found"], answer["more"], answer["suggestions"]) == (True, 0, [])
    (total,) = answer["definitions"]
    assert (total["qualified_name"], total["kind"], total["path"]) == ("Basket.total", "method", "shop/prices.py")
    assert (total["start_line"], total["end_line"]) == (20, 22)
    assert total["signature"] == "def total(self) -> float"
    assert total["docstring"] == "The sum of all items."
    assert total["body"].startswith("    def total(self) -> float:\n")
    assert [(one["qualified_name"], one["line"]) for one in total["callers"]] == [("pay", 6)]
    by_id = indexed.call("code.symbol", symbol_id=total["symbol_id"], bodies=False)["definitions"][0]
    assert (by_id["qualified_name"], by_id["body"]) == ("Basket.total", "")


def test_a_symbol_that_is_not_there(indexed: Shelf) -> None:
    answer = indexed.call("code.symbol", name="tax_with")
    assert (answer["found"], answer["definitions"]) == (False, [])
    assert "with_tax" in [one["name"] for one in answer["suggestions"]]
    with pytest.raises(NotFound):
        indexed.call("code.symbol", symbol_id="sym_0000000000000001")
    with pytest.raises(NotFound):
        indexed.call("code.symbol", symbol_id="sym_ffffffffffffffff")


def test_many_of_one_name(shelf: Shelf, tmp_path: Path) -> None:
    files = {f"m{number}/run.py": f"def run():\n    return {number}\n" for number in range(8)}
    shelf.index(
        written(tmp_path / "r", {**files, "tests/test_run.py": "def run(): pass\n", "Run.java": "class Run {}"})
    )
    answer = shelf.call("code.symbol", name="run")
    assert (len(answer["definitions"]), answer["more"]) == (5, 5)
    assert all(one["name"] == "run" for one in answer["definitions"])
    assert shelf.call("code.symbol", name="run", path="m3/run.py")["definitions"][0]["path"] == "m3/run.py"
    assert shelf.call("code.symbol", name="m4.run.run")["definitions"][0]["path"] == "m4/run.py"


def test_a_long_body_is_cut(shelf: Shelf, tmp_path: Path) -> None:
    long = "def long():\n" + "".join(f"    x{number} = {number}\n" for number in range(1_000))
    shelf.index(written(tmp_path / "r", {"a.py": long}), vectors=False)
    (found,) = shelf.call("code.symbol", name="long")["definitions"]
    assert found["body_cut"]
    assert len(found["body"].split("\n")) == 400


def test_callers_and_what_speaks_for_them(indexed: Shelf) -> None:
    assert indexed.callers("with_tax") == {("Basket.add", "same_file"), ("receipt", "imported")}
    assert indexed.callers("receipt") == {("pay", "same_file")}
    assert indexed.callers("Basket") == {("main", "imported")}
    assert indexed.callers("receipt", depth=3) == {("pay", "same_file"), ("main", "same_file")}
    deep = indexed.call("code.callers", name="receipt", depth=2)["callers"]
    assert [(one["qualified_name"], one["uses"], one["depth"]) for one in deep] == [
        ("pay", "receipt", 1),
        ("main", "pay", 2),
    ]
    assert indexed.call("code.callers", name="nothing") == {"found": False, "of": [], "callers": [], "truncated": False}


def test_a_nearer_definition_explains_a_call(shelf: Shelf, tmp_path: Path) -> None:
    root = written(
        tmp_path / "r",
        {
            "a.py": "def run(): pass\n",
            "b.py": "def run(): pass\ndef here(): run()\n",
            "c.py": "from a import run\ndef there(): run()\n",
            "d.py": "import a\ndef far(): a.run()\n",
            "e.py": "class Own:\n    def run(self): pass\n    def go(self): self.run()\n",
            "g.py": "from pickle import run\ndef elsewhere(): run()\n",
            "f.py": "from e import Own\nclass Heir(Own):\n    def start(self): self.run()\n",
        },
    )
    shelf.index(root, vectors=False)
    named_alike = {("elsewhere", "name")}  # its module is not in the repository
    assert shelf.callers("run", path="a.py") == {("there", "imported"), ("far", "qualified")} | named_alike
    assert shelf.callers("run", path="b.py") == {("here", "same_file")} | named_alike
    assert shelf.callers("Own.run") == {("Own.go", "same_file"), ("Heir.start", "name")} | {("far", "name")}
    assert ("Heir", "imported") in shelf.callers("Own")


def test_a_circle_of_calls_ends(shelf: Shelf, tmp_path: Path) -> None:
    circle = "def a(): b()\ndef b(): c()\ndef c(): a(); c()\n"
    shelf.index(written(tmp_path / "r", {"a.py": circle}), vectors=False)
    found = shelf.call("code.callers", name="a", depth=3)["callers"]
    assert [one["qualified_name"] for one in found] == ["c", "b", "a"]


def test_a_function_with_very_many_callers(shelf: Shelf, tmp_path: Path) -> None:
    files = {
        f"f{number:03}.py": "from log import note\n" + "".join(f"def g{i}(): note()\n" for i in range(5))
        for number in range(60)
    }
    shelf.index(written(tmp_path / "r", {**files, "log.py": "def note(): pass\n"}), vectors=False)
    answer = shelf.call("code.callers", name="note", depth=3, limit=200)
    assert (len(answer["callers"]), answer["truncated"]) == (200, True)


def test_lines_of_a_file(indexed: Shelf, shop: Path) -> None:
    lines = (shop / "shop/prices.py").read_text().split("\n")
    answer = indexed.call("code.read", path="shop/prices.py", start_line=6, end_line=8)
    assert answer["text"] == "\n".join(lines[5:8])
    assert (answer["start_line"], answer["end_line"], answer["total_lines"]) == (6, 8, len(lines) - 1)
    assert not answer["truncated"]
    written(shop, {"shop/prices.py": "changed\n"})
    assert indexed.call("code.read", path="./shop/prices.py", start_line=6, end_line=8)["text"] == answer["text"]
    past = indexed.call("code.read", path="shop/prices.py", start_line=900, end_line=950)
    assert (past["text"], past["end_line"]) == ("", 899)


def test_a_long_file_is_read_in_parts(shelf: Shelf, tmp_path: Path) -> None:
    shelf.index(written(tmp_path / "r", {"a.txt": "".join(f"{number}\n" for number in range(1, 5_001))}))
    first = shelf.call("code.read", path="a.txt", start_line=1, end_line=3_000)
    assert (first["end_line"], first["truncated"]) == (1_000, True)
    assert shelf.call("code.read", path="a.txt")["end_line"] == 200


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "shop/../../x", "shop", "nothing.py", "\u202e"])
def test_only_indexed_files_are_read(indexed: Shelf, path: str) -> None:
    with pytest.raises(NotFound):
        indexed.call("code.read", path=path)


def test_a_misspelt_path_gets_a_hint(indexed: Shelf) -> None:
    with pytest.raises(NotFound, match=r"did you mean shop/prices\.py\?"):
        indexed.call("code.read", path="src/prices.py")


@pytest.mark.parametrize("op", sorted(READS))
def test_a_namespace_without_a_repository(shelf: Shelf, op: str) -> None:
    with pytest.raises(NotFound, match="holds no repository"):
        shelf.call(op, **READS[op])


@pytest.mark.parametrize("op", sorted(READS))
@pytest.mark.parametrize("scope", list(ReadScope))
def test_a_repository_belongs_to_its_namespace_and_to_no_user(indexed: Shelf, op: str, scope: ReadScope) -> None:
    caller = Caller("t", Role.VIEWER, {"org": CODE_ORG, "user_id": "bob"}, frozenset({"shop"}), scope)
    answer = indexed.call(op, caller=caller, **READS[op])
    assert answer.get("results") or answer.get("definitions") or answer.get("callers") or answer.get("text")
    stranger = Caller("t", Role.VIEWER, {"org": CODE_ORG}, frozenset({"other"}))
    with pytest.raises(Denied):
        indexed.call(op, caller=stranger, **READS[op])


def test_a_symbol_of_another_namespace_is_not_there(shelf_of: ShelfOf, shop: Path) -> None:
    one, two = shelf_of("one"), shelf_of("two")
    one.index(shop)
    two.index(shop)
    symbol_id = one.call("code.symbol", name="Basket")["definitions"][0]["symbol_id"]
    for op in ("code.symbol", "code.callers"):
        with pytest.raises(NotFound):
            two.call(op, symbol_id=symbol_id)
    with pytest.raises(NotFound):
        one.core.call("code.symbol", org="elsewhere", namespace="one", symbol_id=symbol_id)
    two.call("code.delete")
    assert one.names("Basket")[0] == "Basket"


TURNS = itertools.count()
WORDS = st.sampled_from(["lamp", "chair", "river", "stone", "cloud"])


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_read_shows_another_namespaces_code(shelf_of: ShelfOf, tmp_path: Path, data: st.DataObject) -> None:
    """Two namespaces with random functions, asked and partly deleted in any order."""
    mark = next(TURNS)
    shelves = {name: shelf_of(f"{name}{mark}") for name in ("a", "b")}
    own: dict[str, set[str]] = {}
    for name, shelf in shelves.items():
        words = data.draw(st.lists(WORDS, min_size=1, max_size=4, unique=True))
        own[name] = {f"{word}_{name}" for word in words}
        root = tmp_path / f"{name}{mark}"
        shelf.index(written(root, {f"{word}.py": f"def {word}(): pass\n" for word in own[name]}))
    query = data.draw(WORDS)
    gone = data.draw(st.sampled_from(["", "a", "b"]))
    if gone:
        shelves[gone].call("code.delete")
    for name, shelf in shelves.items():
        if name == gone:
            with pytest.raises(NotFound):
                shelf.call("code.search", query=query)
            continue
        assert set(shelf.names(query, top_k=50, kinds=["function"])) <= own[name]
        for word in own["a"] | own["b"]:
            assert shelf.call("code.symbol", name=word)["found"] is (word in own[name])
