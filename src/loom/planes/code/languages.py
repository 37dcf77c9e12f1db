"""The languages that are read, and by which endings of a file's name they are known."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

import tree_sitter_c
import tree_sitter_c_sharp
import tree_sitter_cpp
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_php
import tree_sitter_python
import tree_sitter_ruby
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language

from loom.planes.code import finders
from loom.planes.code.grammar import (
    CLASS,
    CONSTANT,
    ENUM,
    FUNCTION,
    INTERFACE,
    MACRO,
    METHOD,
    MODULE,
    PROPERTY,
    STRUCT,
    TRAIT,
    TYPE,
    Grammar,
)

PYTHON: Final = Grammar(
    "python",
    tree_sitter_python.language,
    defines={"function_definition": FUNCTION},
    finders={"class_definition": finders.python_class, "assignment": finders.python_assignment},
    calls={"call": "function"},
    import_nodes=frozenset({"import_statement", "import_from_statement", "future_import_statement"}),
    wrappers=frozenset({"decorated_definition"}),
)

_JS_DEFINES: Final = {
    "function_declaration": FUNCTION,
    "generator_function_declaration": FUNCTION,
    "class_declaration": CLASS,
    "method_definition": METHOD,
}
_JS_FINDERS: Final = {
    "variable_declarator": finders.js_declarator,
    "assignment_expression": finders.js_assignment,
    "pair": finders.js_pair,
    "field_definition": finders.js_field,
    "public_field_definition": finders.js_field,
}
_JS_CALLS: Final = {
    "call_expression": "function",
    "new_expression": "constructor",
    "jsx_self_closing_element": "name",
    "jsx_opening_element": "name",
}
_JS_NAMES: Final = frozenset(
    {
        "identifier",
        "property_identifier",
        "private_property_identifier",
        "type_identifier",
        "shorthand_property_identifier",
        "shorthand_property_identifier_pattern",
    }
)

JAVASCRIPT: Final = Grammar(
    "javascript",
    tree_sitter_javascript.language,
    defines=_JS_DEFINES,
    finders=_JS_FINDERS,
    calls=_JS_CALLS,
    base_nodes=frozenset({"class_heritage"}),
    import_nodes=frozenset({"import_statement"}),
    wrappers=frozenset({"export_statement", "lexical_declaration", "variable_declaration"}),
    names=_JS_NAMES,
)

_TS_DEFINES: Final = {
    **_JS_DEFINES,
    "abstract_class_declaration": CLASS,
    "function_signature": FUNCTION,
    "method_signature": METHOD,
    "abstract_method_signature": METHOD,
    "interface_declaration": INTERFACE,
    "type_alias_declaration": TYPE,
    "enum_declaration": ENUM,
    "internal_module": MODULE,
    "module": MODULE,
    "property_signature": PROPERTY,
}
_TS_BASES: Final = frozenset({"class_heritage", "extends_type_clause"})
_TS_WRAPPERS: Final = JAVASCRIPT.wrappers | {"ambient_declaration"}

TYPESCRIPT: Final = Grammar(
    "typescript",
    tree_sitter_typescript.language_typescript,
    defines=_TS_DEFINES,
    finders=_JS_FINDERS,
    calls=_JS_CALLS,
    base_nodes=_TS_BASES,
    import_nodes=frozenset({"import_statement"}),
    wrappers=_TS_WRAPPERS,
    names=_JS_NAMES,
)

TSX: Final = Grammar(
    "typescript",
    tree_sitter_typescript.language_tsx,
    defines=_TS_DEFINES,
    finders=_JS_FINDERS,
    calls=_JS_CALLS,
    base_nodes=_TS_BASES,
    import_nodes=frozenset({"import_statement"}),
    wrappers=_TS_WRAPPERS,
    names=_JS_NAMES,
)

GO: Final = Grammar(
    "go",
    tree_sitter_go.language,
    defines={"function_declaration": FUNCTION, "method_elem": METHOD},
    finders={
        "method_declaration": finders.go_method,
        "type_spec": finders.go_type,
        "type_alias": finders.go_type,
        "const_spec": finders.go_value,
        "var_spec": finders.go_value,
    },
    calls={"call_expression": "function", "type_conversion_expression": "type"},
    import_nodes=frozenset({"import_declaration"}),
    wrappers=frozenset({"type_declaration", "const_declaration", "var_declaration"}),
    names=frozenset(
        {
            "identifier",
            "field_identifier",
            "type_identifier",
            "package_identifier",
            "interpreted_string_literal_content",
        }
    ),
)

RUST: Final = Grammar(
    "rust",
    tree_sitter_rust.language,
    defines={
        "function_item": FUNCTION,
        "function_signature_item": FUNCTION,
        "struct_item": STRUCT,
        "union_item": STRUCT,
        "enum_item": ENUM,
        "trait_item": TRAIT,
        "const_item": CONSTANT,
        "static_item": CONSTANT,
        "type_item": TYPE,
        "macro_definition": MACRO,
    },
    finders={"impl_item": finders.rust_impl, "mod_item": finders.rust_mod},
    calls={"call_expression": "function", "macro_invocation": "macro"},
    base_nodes=frozenset({"trait_bounds"}),
    import_nodes=frozenset({"use_declaration"}),
    names=frozenset({"identifier", "field_identifier", "type_identifier"}),
    comments=frozenset({"line_comment", "block_comment"}),
    between=frozenset({"attribute_item"}),
)

JAVA: Final = Grammar(
    "java",
    tree_sitter_java.language,
    defines={
        "class_declaration": CLASS,
        "record_declaration": CLASS,
        "interface_declaration": INTERFACE,
        "annotation_type_declaration": INTERFACE,
        "enum_declaration": ENUM,
        "method_declaration": METHOD,
        "constructor_declaration": METHOD,
        "compact_constructor_declaration": METHOD,
    },
    finders={"variable_declarator": finders.class_value},
    calls={"method_invocation": "", "object_creation_expression": "type"},
    base_nodes=frozenset({"superclass", "super_interfaces", "extends_interfaces"}),
    import_nodes=frozenset({"import_declaration"}),
    wrappers=frozenset({"field_declaration"}),
    names=frozenset({"identifier", "type_identifier"}),
    comments=frozenset({"line_comment", "block_comment"}),
)

_C_FINDERS: Final = {
    "function_definition": finders.c_function,
    "declaration": finders.c_declaration,
    "struct_specifier": finders.c_with_body,
    "union_specifier": finders.c_with_body,
    "enum_specifier": finders.c_with_body,
    "type_definition": finders.c_typedef,
}
_C_DEFINES: Final = {"preproc_function_def": MACRO, "preproc_def": MACRO}
_C_NAMES: Final = frozenset({"identifier", "field_identifier", "type_identifier"})

C: Final = Grammar(
    "c",
    tree_sitter_c.language,
    defines=_C_DEFINES,
    finders=_C_FINDERS,
    calls={"call_expression": "function"},
    import_nodes=frozenset({"preproc_include"}),
    names=_C_NAMES | {"string_content", "system_lib_string"},
    skipped=frozenset({"string_literal"}),
)

CPP: Final = Grammar(
    "cpp",
    tree_sitter_cpp.language,
    defines={**_C_DEFINES, "alias_declaration": TYPE, "concept_definition": TYPE},
    finders={
        **_C_FINDERS,
        "class_specifier": finders.c_with_body,
        "field_declaration": finders.c_declaration,
        "namespace_definition": finders.dotted_module,
    },
    calls={"call_expression": "function", "new_expression": "type"},
    base_nodes=frozenset({"base_class_clause"}),
    import_nodes=frozenset({"preproc_include"}),
    wrappers=frozenset({"template_declaration"}),
    names=_C_NAMES | {"namespace_identifier", "system_lib_string"},
)

RUBY: Final = Grammar(
    "ruby",
    tree_sitter_ruby.language,
    defines={"module": MODULE, "class": CLASS, "method": METHOD, "singleton_method": METHOD},
    finders={"singleton_class": finders.ruby_singleton_class, "assignment": finders.ruby_assignment},
    calls={"call": ""},
    base_nodes=frozenset({"superclass"}),
    names=frozenset({"identifier", "constant"}),
)

PHP: Final = Grammar(
    "php",
    tree_sitter_php.language_php,
    defines={
        "class_declaration": CLASS,
        "interface_declaration": INTERFACE,
        "trait_declaration": TRAIT,
        "enum_declaration": ENUM,
        "function_definition": FUNCTION,
        "method_declaration": METHOD,
    },
    finders={"const_element": finders.php_const, "property_element": finders.php_property},
    calls={
        "function_call_expression": "function",
        "member_call_expression": "",
        "nullsafe_member_call_expression": "",
        "scoped_call_expression": "",
        "object_creation_expression": "#",
    },
    base_nodes=frozenset({"base_clause", "class_interface_clause", "use_declaration"}),
    import_nodes=frozenset({"namespace_use_declaration"}),
    wrappers=frozenset({"const_declaration", "property_declaration"}),
    names=frozenset({"name"}),
    skipped=frozenset({"variable_name", "namespace_definition_name"}),
)

C_SHARP: Final = Grammar(
    "csharp",
    tree_sitter_c_sharp.language,
    defines={
        "class_declaration": CLASS,
        "record_declaration": CLASS,
        "record_struct_declaration": STRUCT,
        "struct_declaration": STRUCT,
        "interface_declaration": INTERFACE,
        "enum_declaration": ENUM,
        "method_declaration": METHOD,
        "constructor_declaration": METHOD,
        "local_function_statement": FUNCTION,
        "delegate_declaration": TYPE,
        "property_declaration": PROPERTY,
    },
    finders={
        "variable_declarator": finders.class_value,
        "namespace_declaration": finders.dotted_module,
        "file_scoped_namespace_declaration": finders.dotted_module,
    },
    calls={"invocation_expression": "function", "object_creation_expression": "type"},
    base_nodes=frozenset({"base_list"}),
    import_nodes=frozenset({"using_directive"}),
    wrappers=frozenset({"field_declaration"}),
)

GRAMMARS: Final[Mapping[str, Grammar]] = MappingProxyType(
    {
        ".py": PYTHON,
        ".pyi": PYTHON,
        ".pyw": PYTHON,
        ".js": JAVASCRIPT,
        ".mjs": JAVASCRIPT,
        ".cjs": JAVASCRIPT,
        ".jsx": JAVASCRIPT,
        ".ts": TYPESCRIPT,
        ".mts": TYPESCRIPT,
        ".cts": TYPESCRIPT,
        ".tsx": TSX,
        ".go": GO,
        ".rs": RUST,
        ".java": JAVA,
        ".c": C,
        ".h": C,
        ".cc": CPP,
        ".cpp": CPP,
        ".cxx": CPP,
        ".hh": CPP,
        ".hpp": CPP,
        ".hxx": CPP,
        ".ipp": CPP,
        ".rb": RUBY,
        ".rake": RUBY,
        ".gemspec": RUBY,
        ".php": PHP,
        ".cs": C_SHARP,
    }
)

LANGUAGES: Final = tuple(sorted({grammar.name for grammar in GRAMMARS.values()}))


def grammar_of(path: str, head: str = "") -> Grammar | None:
    """The grammar for a file, by the ending of its name; by the first line of a script without one.

    Args:
        path: the file's path.
        head: its first characters; a `.h` file that speaks of classes or namespaces is C++.
    """
    ending = PurePosixPath(path).suffix.lower()
    if ending == ".h" and any(sign in head for sign in ("class ", "namespace ", "template<", "template <", "std::")):
        return CPP
    if ending in GRAMMARS:
        return GRAMMARS[ending]
    first = head.partition("\n")[0]
    if not ending and first.startswith("#!"):
        programs = {"python": PYTHON, "node": JAVASCRIPT, "ruby": RUBY, "php": PHP}
        return next((grammar for name, grammar in programs.items() if name in first), None)
    return None


@lru_cache(maxsize=32)
def _loaded(place: int) -> Language:
    return Language(_DISTINCT[place].load())


_DISTINCT: Final = (PYTHON, JAVASCRIPT, TYPESCRIPT, TSX, GO, RUST, JAVA, C, CPP, RUBY, PHP, C_SHARP)


def compiled(grammar: Grammar) -> Language:
    """The grammar as tree-sitter wants it, loaded once."""
    return _loaded(_DISTINCT.index(grammar))
