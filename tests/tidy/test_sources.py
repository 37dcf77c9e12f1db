"""The house rules that no ready-made tool holds, read from the syntax trees."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = sorted(path for top in ("src", "tests", "benchmarks", "docs", ".ci") for path in (ROOT / top).rglob("*.py"))

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 7

BROAD_EXCEPTS = ("jobs/worker.py", "edges/last.py")
"""The worker's loop and the edges' last handler swallow what they did not expect, and log it."""

LOOSE_DICTS = (
    "ops/dispatch.py",
    "ops/identity.py",
    "ops/schema.py",
    "ops/idempotency.py",
    "ops/text_checks.py",
    "edges/",
)
"""Where JSON is carried whose shape is not known there."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed() -> tuple[tuple[str, tuple[ast.AST, ...]], ...]:
    """Every file with its nodes, read once for all tests."""
    gc.disable()  # of so many objects, none is garbage, and to look takes most of the time
    try:
        return tuple(
            (path.relative_to(ROOT).as_posix(), tuple(ast.walk(ast.parse(path.read_text("utf-8"))))) for path in PYTHON
        )
    finally:
        gc.freeze()
        gc.enable()


def nodes() -> Iterator[tuple[str, ast.AST]]:
    return ((name, node) for name, found in parsed() for node in found)


def functions() -> Iterator[tuple[str, Function]]:
    for name, node in nodes():
        if isinstance(node, Function):
            yield f"{name}:{node.lineno} {node.name}", node


def in_src(name: str) -> str:
    return name.removeprefix("src/loom/")


def sources() -> Iterator[tuple[str, ast.AST]]:
    return ((name, node) for name, node in nodes() if name.startswith("src/loom/"))


def test_there_is_something_to_check() -> None:
    assert len({name for name, _ in sources()}) > 30
    assert len(list(functions())) > 300


def test_files_are_short() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines()) for path in PYTHON}
    assert {name: length for name, length in lengths.items() if length > FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    lengths = {name: (node.end_lineno or node.lineno) - node.lineno + 1 for name, node in functions()}
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX} == {}


def test_parameters_are_few() -> None:
    counts = {name: parameters(node) for name, node in functions()}
    assert {name: count for name, count in counts.items() if count > PARAMETERS_MAX} == {}


def within(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, without the functions in it, which are looked at by themselves."""
    for inner in ast.iter_child_nodes(node):
        if not isinstance(inner, Function):
            yield inner
            yield from within(inner)


def parameters(node: Function) -> int:
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([arg for arg in named if arg.arg not in ("self", "cls")])


def test_imports_stand_at_the_top() -> None:
    found = [
        f"{where} line {inner.lineno}"
        for where, node in functions()
        for inner in within(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    assert found == []


def test_one_function_loads_modules_by_name() -> None:
    found = [name for name, node in sources() if mentions(node, "importlib", "import_module")]
    assert found == ["src/loom/edges/cli/main.py"]


def test_nothing_is_imported_for_type_checking_only() -> None:
    assert [name for name, node in nodes() if is_named(node, "TYPE_CHECKING")] == []


def test_errors_are_caught_by_name() -> None:
    found = {
        in_src(name)
        for name, node in sources()
        if isinstance(node, ast.ExceptHandler) and is_broad(node.type) and not passes_on(node)
    }
    assert found <= set(BROAD_EXCEPTS)


def is_broad(kind: ast.expr | None) -> bool:
    return kind is None or any(is_named(node, "Exception", "BaseException") for node in ast.walk(kind))


def passes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only tidies up: it ends by raising the same error again."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_unshaped_data_stays_at_the_edges() -> None:
    found = {
        in_src(name)
        for name, node in sources()
        if isinstance(node, ast.Subscript) and is_named(node.value, "dict", "Mapping")
        if ast.unparse(node) in ("dict[str, Any]", "Mapping[str, Any]")
    }
    assert {name for name in found if not name.startswith(LOOSE_DICTS)} == set()


def test_the_environment_is_read_in_one_place() -> None:
    found = {
        in_src(name) for name, node in sources() if mentions(node, "os", "environ") or mentions(node, "os", "getenv")
    }
    assert found == {"config.py"}


def test_tests_wait_for_conditions() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, node in nodes()
        if name.startswith("tests/") and isinstance(node, ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "sleep"
    ]
    assert found == []


def is_named(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def mentions(node: ast.AST, module: str, name: str) -> bool:
    """Whether `node` is `module.name`, or imports `name` from `module`."""
    if isinstance(node, ast.ImportFrom):
        return node.module == module and any(alias.name == name for alias in node.names)
    return isinstance(node, ast.Attribute) and node.attr == name and is_named(node.value, module)


@pytest.mark.parametrize(
    ("text", "broad"),
    [
        ("except Exception: pass", True),
        ("except (ValueError, Exception): pass", True),
        ("except: pass", True),
        ("except ValueError: pass", False),
    ],
)
def test_a_broad_except_is_recognised(text: str, broad: bool) -> None:
    handler = next(n for n in ast.walk(ast.parse("try: pass\n" + text)) if isinstance(n, ast.ExceptHandler))
    assert is_broad(handler.type) is broad
