# Generated from the registry by `make docs`. Do not edit.
"""Fields of the operations of `code`."""

from typing import Literal, NotRequired, Required

from loom.edges.client.core import Identity


class CodeCallersFields(Identity):
    """What `code.callers` takes."""

    name: NotRequired[str]
    """The symbol: name, Class.name or module.Class.name, as your language spells it."""
    symbol_id: NotRequired[str]
    """Or the id that an answer gave; then the name is not needed."""
    path: NotRequired[str]
    """Only in this file, or in files whose paths end so; empty for any."""
    depth: NotRequired[int]
    """How many steps to go: callers, their callers, 1 to 3."""
    limit: NotRequired[int]
    """At most this many uses, 1 to 200."""


class CodeDeleteFields(Identity):
    """What `code.delete` takes."""


class CodeIndexFields(Identity):
    """What `code.index` takes."""

    source: NotRequired[str]
    """A folder on the server, as an absolute path (the single user, and admins in folders that the..."""
    revision: NotRequired[str]
    """Of a git address, the branch, tag or commit; empty for its usual branch."""
    vectors: NotRequired[bool | None]
    """Whether it is to be found by meaning too, which goes on after the rest; null to leave that..."""


class CodeIndexStatusFields(Identity):
    """What `code.index_status` takes."""


class CodeReadFields(Identity):
    """What `code.read` takes."""

    path: Required[str]
    """The file, from the top of the repository."""
    start_line: NotRequired[int]
    """The first line, from 1."""
    end_line: NotRequired[int]
    """The last line; 0 for 200 lines. At most 1,000 lines are given."""


class CodeSearchFields(Identity):
    """What `code.search` takes."""

    query: Required[str]
    """A name, words that stand in the code, or what it does in plain words."""
    top_k: NotRequired[int]
    """At most this many definitions, 1 to 100."""
    kinds: NotRequired[
        list[
            Literal[
                "function",
                "method",
                "class",
                "interface",
                "struct",
                "enum",
                "trait",
                "module",
                "type",
                "macro",
                "constant",
                "variable",
                "property",
                "prototype",
                "file",
            ]
        ]
    ]
    """Only of these kinds; empty for any."""
    languages: NotRequired[list[str]]
    """Only in these languages, for example python or csharp; empty for any."""
    path_prefix: NotRequired[str]
    """Only in files whose paths begin so, for example src/; empty for any."""


class CodeSymbolFields(Identity):
    """What `code.symbol` takes."""

    name: NotRequired[str]
    """The symbol: name, Class.name or module.Class.name, as your language spells it."""
    symbol_id: NotRequired[str]
    """Or the id that an answer gave; then the name is not needed."""
    path: NotRequired[str]
    """Only in this file, or in files whose paths end so; empty for any."""
    bodies: NotRequired[bool]
    """Whether to show each definition's source."""
