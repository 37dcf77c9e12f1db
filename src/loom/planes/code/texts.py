"""Under which words a symbol is found, and what of it is given to the embedder. Pure."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from loom.planes.code.extract import Extracted, Symbol
from loom.planes.code.grammar import FILE

WORDS_CHARACTERS_MAX: Final = 30_000
OWN_TEXT_MIN: Final = 30
"""A file's own text, outside of its definitions, that is worth a symbol; characters without space."""

MEANING_CHARACTERS_MAX: Final = 1_200


def with_file(path: str, lines: Sequence[str], found: Extracted) -> list[Symbol]:
    """The file's symbols, and one of kind `file` for what stands outside of them, where that is enough."""
    symbols = list(found.symbols)
    outside = _without(lines, 1, len(lines), [one for one in symbols if one.parent < 0])
    if sum(len(line.strip()) for line in outside) >= OWN_TEXT_MIN:
        name = PurePosixPath(path).name[:128]
        symbols.append(Symbol(FILE, name, path[:512], "", found.docstring, 1, max(1, len(lines))))
    return symbols


def words_of(path: str, lines: Sequence[str], symbols: Sequence[Symbol]) -> list[str]:
    """The words of each symbol: names, signature, documentation, and its own lines.

    The lines of what is defined inside a class or a file belong to that, and not to it;
    of those it has the names.
    """
    inside: list[list[Symbol]] = [[] for _ in symbols]
    for symbol in symbols:
        if symbol.parent >= 0:
            inside[symbol.parent].append(symbol)
    top = [symbol for symbol in symbols if symbol.parent < 0 and symbol.kind != FILE]
    texts: list[str] = []
    for place, symbol in enumerate(symbols):
        held = top if symbol.kind == FILE else inside[place]
        own = _without(lines, symbol.start_line, symbol.end_line, held)
        names = [one.name for one in held]
        parts = (symbol.qualified, path, symbol.signature, symbol.docstring, *names, *own)
        texts.append("\n".join(parts)[:WORDS_CHARACTERS_MAX])
    return texts


def _without(lines: Sequence[str], first: int, last: int, held: Sequence[Symbol]) -> list[str]:
    """Lines `first` to `last`, from 1, without those of `held`, which are in order."""
    own: list[str] = []
    at = first
    for one in held:
        own += lines[at - 1 : max(at - 1, one.start_line - 1)]
        at = max(at, one.end_line + 1)
    return [*own, *lines[at - 1 : last]]


def meaning_of(qualified: str, docstring: str, lines: Sequence[str]) -> str:
    """What the embedder reads of a symbol: how it begins, after what is said about it elsewhere than there.

    On CoSQA the plain source was as good as any arrangement of name, documentation and body.
    """
    source = "\n".join(lines)[:MEANING_CHARACTERS_MAX]
    said = docstring.partition("\n\n")[0]
    before = (qualified if "." in qualified else "", "" if said[:40] in source else said)
    return "\n".join(filter(None, (*before, source)))[:MEANING_CHARACTERS_MAX]
