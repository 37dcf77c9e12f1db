"""Reads one file's source: what it defines, and which names it uses where.

One walk over the syntax tree with a cursor, without recursion, so that depth costs
nothing. Time, definitions and uses are bounded; what is beyond is left out and said.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tree_sitter import Language, Node, Parser, Point, Tree

from loom.planes.code import comments
from loom.planes.code import grammar as grammars
from loom.planes.code.grammar import CALLABLE, CLASS_LIKE, FUNCTION, METHOD, TRANSPARENT, Found, Grammar, Place
from loom.planes.code.languages import compiled

PARSE_TIMEOUT_S: Final = 3.0
WALK_TIMEOUT_S: Final = 3.0
SYMBOLS_MAX: Final = 5_000
USES_MAX: Final = 100_000
NAME_CHARACTERS_MAX: Final = 128
QUALIFIED_CHARACTERS_MAX: Final = 512
RECEIVER_CHARACTERS_MAX: Final = 64
SIGNATURE_CHARACTERS_MAX: Final = 400
MENTION_CHARACTERS_MIN: Final = 3
NODES_A_LOOK: Final = 4_096
CHUNK_BYTES: Final = 65_536

SELF: Final = frozenset({"self", "cls", "this", "super", "parent", "static"})
"""How languages spell the object that a method belongs to."""

OF_SOMETHING: Final = "."
"""The receiver of a mention that stands after a dot or its like, whatever it is taken from."""

MEMBER_SIGNS: Final = frozenset({b".", b">", b":"})

CALL, MEMBER_CALL, MENTION, IMPORT, BASE = "call", "member_call", "mention", "import", "base"


@dataclass(slots=True)
class Symbol:
    """One definition.

    Attributes:
        kind: one of `grammar.KINDS`.
        name: its own name.
        qualified: the names around it and its own, joined by dots.
        signature: how it is declared, in one line.
        docstring: what is written about it, without comment signs.
        start_line: the first line, decorators included, from 1.
        end_line: the last line.
        parent: the place in the file's list of what it stands in; -1 for none.
    """

    kind: str
    name: str
    qualified: str
    signature: str
    docstring: str
    start_line: int
    end_line: int
    parent: int = -1


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a name.

    Attributes:
        name: what is used.
        role: `call`, `member_call` (of something), `mention`, `import` or `base`.
        receiver: what a member is called of, when that is a name: `self`, a class, a module; `OF_SOMETHING` for
            the mention of a member.
        line: from 1.
    """

    name: str
    role: str
    receiver: str
    line: int


@dataclass(slots=True)
class Extracted:
    """What one file holds.

    Attributes:
        symbols: in the order they stand in the file.
        uses: every use of a name that is no definition.
        broken: whether the file has syntax errors.
        cut: whether a bound was met.
        docstring: what is written about the file as a whole.
    """

    symbols: list[Symbol] = field(default_factory=list[Symbol])
    uses: list[Use] = field(default_factory=list[Use])
    broken: bool = False
    cut: bool = False
    docstring: str = ""


def extracted(grammar: Grammar, text: str, clock_s: Callable[[], float] = time.monotonic) -> Extracted:
    """What `text` defines and uses. Never raises for any text: what cannot be read in time gives less."""
    source = text.encode()
    tree = _tree(grammar, source, clock_s)
    if tree is None:
        return Extracted(cut=True)
    reading = _Reading(grammar, source)
    reading.walk(tree, clock_s() + WALK_TIMEOUT_S, clock_s)
    reading.out.broken = tree.root_node.has_error
    return reading.out


def _tree(grammar: Grammar, source: bytes, clock_s: Callable[[], float]) -> Tree | None:
    until_s = clock_s() + PARSE_TIMEOUT_S

    def chunk(offset: int, _: Point) -> bytes:
        return source[offset : offset + CHUNK_BYTES]

    try:
        return Parser(compiled(grammar)).parse(chunk, progress_callback=lambda _, __: clock_s() > until_s)
    except ValueError:  # the way in which the binding says that it was told to stop
        return None


@dataclass(slots=True)
class _Open:
    """A definition the walk is inside of."""

    end_byte: int
    kind: str
    names: tuple[str, ...]
    place: int


@dataclass(slots=True)
class _Reading:
    """The state of one walk."""

    grammar: Grammar
    source: bytes
    out: Extracted = field(default_factory=Extracted)
    open: list[_Open] = field(default_factory=list[_Open])
    taken: set[int] = field(default_factory=set[int])
    roles: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    wrapper: tuple[int, Node] | None = None
    notes: comments.Notes = field(default_factory=comments.Notes)
    line_starts: list[int] = field(default_factory=list[int])

    def walk(self, tree: Tree, until_s: float, clock_s: Callable[[], float]) -> None:
        """Look at every node once, parents before what they hold."""
        looks = self._looks()
        cursor = tree.walk()
        depth = seen = 0
        while True:
            node = cursor.node
            look = looks.get(node.kind_id) if node is not None else None
            descend = True
            if look is not None and node is not None:
                while self.open and node.start_byte >= self.open[-1].end_byte:
                    self.open.pop()
                descend = look(node, depth)
            seen += 1
            if seen % NODES_A_LOOK == 0 and clock_s() > until_s:
                self.out.cut = True
                return
            if descend and cursor.goto_first_child():
                depth += 1
                continue
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return
                depth -= 1

    def _looks(self) -> dict[int, Callable[[Node, int], bool]]:
        """What to do with a node, by the number of its type; the later of two ways holds."""
        its = self.grammar
        ways: tuple[tuple[Callable[[Node, int], bool], frozenset[str]], ...] = (
            (self._name, its.names),
            (self._comment, its.comments),
            (self._between, its.between),
            (self._role(BASE), its.base_nodes),
            (self._role(IMPORT), its.import_nodes),
            (self._wrap, its.wrappers),
            (self._call, frozenset(its.calls)),
            (self._definition, frozenset({*its.defines, *its.finders})),
            (_skip, its.skipped),
        )
        numbers = _numbers(its.name, compiled(its))
        return {number: look for look, kinds in ways for kind in kinds for number in numbers.get(kind, ())}

    def _definition(self, node: Node, depth: int) -> bool:
        place = self._place()
        finder = self.grammar.finders.get(node.type)
        found = finder(node, place) if finder else self._plain(node)
        if found is None:
            return True
        name = grammars.text_of(found.name, self.source) if found.name is not None else found.words
        self._take_bases(found)
        if found.name is not None:
            self.taken.add(found.name.start_byte)
        outer = (*(self.open[-1].names if self.open else ()), *filter(None, found.outer))
        names = (*outer, name[:NAME_CHARACTERS_MAX]) if name else outer
        index = self.open[-1].place if self.open else -1
        if found.kind != TRANSPARENT and name:
            index = self._add(node, depth, found, names)
        self.open.append(_Open(node.end_byte, self._kind(found, place), names, index))
        return True

    def _plain(self, node: Node) -> Found | None:
        name = node.child_by_field_name("name")
        if name is None:
            return None
        return Found(self.grammar.defines[node.type], name, body=node.child_by_field_name("body"))

    def _kind(self, found: Found, place: Place) -> str:
        if found.kind == FUNCTION and place.kind in CLASS_LIKE:
            return METHOD
        return found.kind if found.kind != TRANSPARENT else (grammars.CLASS if found.words else place.kind or "")

    def _add(self, node: Node, depth: int, found: Found, names: tuple[str, ...]) -> int:
        if len(self.out.symbols) >= SYMBOLS_MAX:
            self.out.cut = True
            return self.open[-1].place if self.open else -1
        whole = node
        if self.wrapper is not None and self.wrapper[0] == depth - 1 and self.wrapper[1].end_byte >= node.end_byte:
            whole = self.wrapper[1]
        first, last = whole.start_point.row, whole.end_point.row
        if whole.end_point.column == 0 and last > first:
            last -= 1
        doc = comments.docstring_in(found.body, self.source) if self.grammar.name == "python" else ""
        self.out.symbols.append(
            Symbol(
                kind=self._kind(found, self._place()),
                name=names[-1],
                qualified=".".join(names)[:QUALIFIED_CHARACTERS_MAX],
                signature=self._signature(node, found.body),
                docstring=doc or self.notes.above(first),
                start_line=first + 1,
                end_line=last + 1,
                parent=self.open[-1].place if self.open else -1,
            )
        )
        return len(self.out.symbols) - 1

    def _signature(self, node: Node, body: Node | None) -> str:
        """How the definition begins, up to its body, in one line."""
        end = body.start_byte if body is not None and body.start_byte > node.start_byte else node.end_byte
        text = self.source[node.start_byte : min(end, node.start_byte + 4 * SIGNATURE_CHARACTERS_MAX)]
        words = text.decode("utf-8", "ignore")
        if body is None:
            words = words.partition("\n")[0]
        line = " ".join(words.split()).removesuffix("=>").rstrip(" {:=;")
        return line[:SIGNATURE_CHARACTERS_MAX]

    def _call(self, node: Node, _: int) -> bool:
        at = self.grammar.calls[node.type]
        if at == "#":
            called = node.named_children[0] if node.named_children else None
            leaf, receiver = grammars.named_by(called, self.grammar)
        elif at:
            leaf, receiver = grammars.named_by(node.child_by_field_name(at), self.grammar)
        else:
            leaf = node.child_by_field_name("method") or node.child_by_field_name("name")
            receiver = grammars.field_of(node, grammars.RECEIVER_FIELDS)
            if leaf is not None and leaf.type not in self.grammar.names:
                leaf = None
        if leaf is None or leaf.start_byte in self.taken:
            return True
        self.taken.add(leaf.start_byte)
        name = grammars.text_of(leaf, self.source)
        if self._ruby_words(node, name):
            return True
        role = CALL if receiver is None else MEMBER_CALL
        of = grammars.last_name(receiver, self.grammar, self.source).lstrip("$")
        self._use(name, role, of[:RECEIVER_CHARACTERS_MAX], leaf)
        return True

    def _ruby_words(self, node: Node, name: str) -> bool:
        """Ruby spells imports and mixins as calls."""
        roles = {"include": BASE, "extend": BASE, "prepend": BASE, "require": IMPORT, "require_relative": IMPORT}
        arguments = node.child_by_field_name("arguments")
        if self.grammar.name != "ruby" or name not in roles or arguments is None:
            return False
        self.roles.append((arguments.start_byte, arguments.end_byte, roles[name]))
        return True

    def _name(self, node: Node, _: int) -> bool:
        at = node.start_byte
        if at in self.taken:
            return False
        while self.roles and at >= self.roles[-1][1]:
            self.roles.pop()
        role = self.roles[-1][2] if self.roles and at >= self.roles[-1][0] else MENTION
        name = grammars.text_of(node, self.source)
        if role == IMPORT:
            name = comments.imported_name(name)
        if role != MENTION:
            self._use(name, role, "", node)
        elif len(name) >= MENTION_CHARACTERS_MIN and name not in SELF:
            self._use(name, role, OF_SOMETHING if self.source[at - 1 : at] in MEMBER_SIGNS else "", node)
        return False

    def _use(self, name: str, role: str, receiver: str, node: Node) -> None:
        if len(self.out.uses) >= USES_MAX:
            self.out.cut = True
        elif 0 < len(name) <= NAME_CHARACTERS_MAX:
            self.out.uses.append(Use(name, role, receiver, node.start_point.row + 1))

    def _comment(self, node: Node, _: int) -> bool:
        if not self.out.symbols and not self.open and not self.out.docstring and node.start_point.row <= 1:
            self.out.docstring = comments.cleaned(grammars.text_of(node, self.source))
        self.notes.add(node, self.source)
        return False

    def _between(self, node: Node, _: int) -> bool:
        self.notes.pass_over(node)
        return True

    def _wrap(self, node: Node, depth: int) -> bool:
        self.wrapper = (depth, node)
        return True

    def _role(self, role: str) -> Callable[[Node, int], bool]:
        def look(node: Node, _: int) -> bool:
            self.roles.append((node.start_byte, node.end_byte, role))
            return True

        return look

    def _take_bases(self, found: Found) -> None:
        self.roles += [(base.start_byte, base.end_byte, BASE) for base in reversed(found.bases)]

    def _place(self) -> Place:
        kind = self.open[-1].kind if self.open else None
        return Place(kind, any(one.kind in CALLABLE for one in self.open), self.source)


def _skip(_: Node, __: int) -> bool:
    return False


@lru_cache(maxsize=32)
def _numbers(_: str, language: Language) -> Mapping[str, tuple[int, ...]]:
    """Every number that stands for a node type; a grammar can have several for one."""
    numbers: dict[str, tuple[int, ...]] = {}
    for number in range(language.node_kind_count):
        kind = language.node_kind_for_id(number)
        if kind is not None and language.node_kind_is_named(number):
            numbers[kind] = (*numbers.get(kind, ()), number)
    return numbers


def enclosing(starts: list[tuple[int, int, int]], line: int) -> int | None:
    """The id of the innermost definition that holds `line`, of `(start, end, id)` in order of start; None for none."""
    place = bisect_right(starts, (line, 1 << 62, 0))
    for start, end, item_id in reversed(starts[:place]):
        if start <= line <= end:
            return item_id
    return None
