"""What a language's syntax tree says about code: which nodes define, call, import and name things. Pure data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from tree_sitter import Node

FUNCTION, METHOD, CLASS, INTERFACE, STRUCT = "function", "method", "class", "interface", "struct"
ENUM, TRAIT, MODULE, TYPE, MACRO = "enum", "trait", "module", "type", "macro"
CONSTANT, VARIABLE, PROPERTY, PROTOTYPE, FILE = "constant", "variable", "property", "prototype", "file"

KINDS: Final = (
    FUNCTION,
    METHOD,
    CLASS,
    INTERFACE,
    STRUCT,
    ENUM,
    TRAIT,
    MODULE,
    TYPE,
    MACRO,
    CONSTANT,
    VARIABLE,
    PROPERTY,
    PROTOTYPE,
    FILE,
)
"""What a symbol can be. A `file` stands for what a file holds outside of its definitions."""

CLASS_LIKE: Final = frozenset({CLASS, INTERFACE, STRUCT, ENUM, TRAIT})
"""A function directly inside one of these is a method."""

CALLABLE: Final = frozenset({FUNCTION, METHOD})
"""What is defined by value inside of these is local and no symbol."""

TRANSPARENT: Final = ""
"""The kind of a node that gives its name to what it holds and is no symbol itself (Rust's `impl`)."""


class Place(NamedTuple):
    """Where a node stands: what kind its innermost definition is, whether any around it is callable, and the source."""

    kind: str | None
    local: bool
    source: bytes

    def text(self, node: Node | None) -> str:
        """A node's source text; empty for none."""
        return text_of(node, self.source)


@dataclass(frozen=True, slots=True)
class Found:
    """A definition.

    Attributes:
        kind: one of `KINDS`, or `TRANSPARENT`.
        name: the node that holds the name; None when `words` says it.
        words: the name, where no node of its own holds it; may be dotted.
        body: where the signature ends; None for the whole node.
        outer: names that stand before the own one, as in C++ `Outer::method`.
        bases: nodes whose names are what the definition inherits from.
    """

    kind: str
    name: Node | None = None
    words: str = ""
    body: Node | None = None
    outer: tuple[str, ...] = ()
    bases: tuple[Node, ...] = ()


Finder = Callable[[Node, Place], "Found | None"]
"""Says what a node defines, if anything, where the node's type alone does not tell."""

NO_FINDERS: Final[Mapping[str, Finder]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Grammar:
    """One language.

    Attributes:
        name: the language, as answers spell it.
        load: gives the compiled grammar.
        defines: a node type that is a definition with a field `name`, and the kind it defines.
        finders: node types that need a closer look.
        calls: a node type that is a call, and the field that holds what is called: empty when the
            node holds name and receiver itself, `#` for its first named child.
        base_nodes: node types inside which names are what a class inherits from.
        import_nodes: node types inside which names are imported.
        wrappers: nodes that stand around a definition and belong to it (decorators, `export`).
        names: leaf types that are names.
        comments: comment types.
        between: node types that may stand between a comment and its definition.
        skipped: node types that are not looked into.
    """

    name: str
    load: Callable[[], object]
    defines: Mapping[str, str]
    calls: Mapping[str, str]
    finders: Mapping[str, Finder] = field(default_factory=lambda: NO_FINDERS)
    base_nodes: frozenset[str] = frozenset()
    import_nodes: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset({"identifier"})
    comments: frozenset[str] = frozenset({"comment"})
    between: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()


NAME_FIELDS: Final = ("property", "attribute", "field", "name", "method", "function", "macro", "constructor", "type")
RECEIVER_FIELDS: Final = (
    "object",
    "value",
    "operand",
    "argument",
    "path",
    "scope",
    "expression",
    "receiver",
    "qualifier",
    "condition",
)
FIRST_CHILD: Final = frozenset({"generic_name", "generic_type"})
LAST_CHILD: Final = frozenset({"conditional_access_expression"})
CALLEE_STEPS_MAX: Final = 8


def field_of(node: Node, names: tuple[str, ...]) -> Node | None:
    """The child in the first of these fields that the node has."""
    for name in names:
        child = node.child_by_field_name(name)
        if child is not None:
            return child
    return None


def text_of(node: Node | None, source: bytes) -> str:
    """The node's source text; empty for none. The binding's own `text` reads the file anew for each node."""
    return "" if node is None else source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def named_by(node: Node | None, grammar: Grammar) -> tuple[Node | None, Node | None]:
    """The leaf that names what an expression stands for, and what it is taken from: `a.b.c` gives `c` and `a.b`."""
    receiver: Node | None = None
    for _ in range(CALLEE_STEPS_MAX):
        if node is None or node.type in grammar.names:
            return node, receiver
        if node.type in grammar.calls:
            return None, None
        inner = field_of(node, NAME_FIELDS)
        receiver = field_of(node, RECEIVER_FIELDS) or receiver
        if inner is None and node.type in FIRST_CHILD and node.named_children:
            inner = node.named_children[0]
        if inner is None and node.type in LAST_CHILD and node.named_children:
            inner = node.named_children[-1]
        node = inner
    return None, None


def last_name(node: Node | None, grammar: Grammar, source: bytes) -> str:
    """The name a receiver ends in: `b` of `a.b`, `self` of `self`; empty when it is more than names."""
    if node is None:
        return ""
    leaf, _ = named_by(node, grammar)
    if leaf is not None:
        return text_of(leaf, source)
    return text_of(node, source) if node.named_child_count <= 1 else ""
