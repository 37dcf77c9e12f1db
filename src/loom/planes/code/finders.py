"""Definitions that a node's type alone does not show: assignments, declarators, receivers."""

from typing import Final

from tree_sitter import Node

from loom.planes.code.grammar import (
    CLASS_LIKE,
    CONSTANT,
    FUNCTION,
    INTERFACE,
    METHOD,
    MODULE,
    PROPERTY,
    PROTOTYPE,
    STRUCT,
    TRANSPARENT,
    TYPE,
    VARIABLE,
    Found,
    Place,
)

JS_FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "generator_function", "function"})
DECLARATORS_MAX: Final = 12
DECLARED: Final = frozenset({"identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name"})


def by_name(kind: str, node: Node, *bases: Node | None) -> Found | None:
    """A definition of `kind` whose name and body are in the usual fields."""
    name = node.child_by_field_name("name")
    if name is None:
        return None
    held = tuple(base for base in bases if base is not None)
    return Found(kind, name, body=node.child_by_field_name("body"), bases=held)


def python_class(node: Node, _: Place) -> Found | None:
    """A class and what it inherits from."""
    return by_name("class", node, node.child_by_field_name("superclasses"))


def python_assignment(node: Node, place: Place) -> Found | None:
    """`NAME = ...` of a module or a class."""
    left = node.child_by_field_name("left")
    if place.local or left is None or left.type != "identifier":
        return None
    return Found(value_kind(place.text(left), place), left)


def value_kind(name: str, place: Place) -> str:
    """What a named value is: a constant when it is written in capitals."""
    if name.isupper():
        return CONSTANT
    return PROPERTY if place.kind in CLASS_LIKE else VARIABLE


def js_declarator(node: Node, place: Place) -> Found | None:
    """`const name = ...`: a function or class by what it is given, else a value of the module."""
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or name.type != "identifier":
        return None
    made = _js_value(name, value)
    if made is not None:
        return made
    return None if place.local else Found(value_kind(place.text(name), place), name)


def js_assignment(node: Node, _: Place) -> Found | None:
    """`exports.name = function ...`."""
    left = node.child_by_field_name("left")
    if left is None:
        return None
    name = left if left.type == "identifier" else left.child_by_field_name("property")
    return None if name is None else _js_value(name, node.child_by_field_name("right"))


def js_pair(node: Node, _: Place) -> Found | None:
    """`name: function ...` in an object."""
    key = node.child_by_field_name("key")
    if key is None or key.type != "property_identifier":
        return None
    return _js_value(key, node.child_by_field_name("value"))


def js_field(node: Node, _: Place) -> Found | None:
    """A field of a class; a method when it holds a function."""
    name = node.child_by_field_name("property") or node.child_by_field_name("name")
    if name is None:
        return None
    return _js_value(name, node.child_by_field_name("value")) or Found(PROPERTY, name)


def _js_value(name: Node, value: Node | None) -> Found | None:
    if value is None:
        return None
    if value.type in JS_FUNCTIONS:
        return Found(FUNCTION, name, body=value.child_by_field_name("body"))
    if value.type == "class":
        return Found("class", name, body=value.child_by_field_name("body"))
    return None


def go_method(node: Node, place: Place) -> Found | None:
    """A method, under the type of its receiver."""
    name, receiver = node.child_by_field_name("name"), node.child_by_field_name("receiver")
    outer = _first_of(receiver, "type_identifier") if receiver is not None else None
    return Found(
        METHOD, name, body=node.child_by_field_name("body"), outer=(place.text(outer),) if outer is not None else ()
    )


def go_type(node: Node, _: Place) -> Found | None:
    """A struct, an interface, or another type."""
    shape = node.child_by_field_name("type")
    kinds = {"struct_type": STRUCT, "interface_type": INTERFACE}
    kind = kinds.get(shape.type, TYPE) if shape is not None else TYPE
    body = shape.named_children[-1] if shape is not None and kind in CLASS_LIKE and shape.named_children else None
    return Found(kind, node.child_by_field_name("name"), body=body)


def go_value(node: Node, place: Place) -> Found | None:
    """A constant or variable of a package."""
    name = node.child_by_field_name("name")
    if place.local or name is None:
        return None
    return Found(CONSTANT if node.type == "const_spec" else VARIABLE, name)


def rust_impl(node: Node, place: Place) -> Found | None:
    """`impl Trait for Type`: no symbol, but what it holds is the type's."""
    named = node.child_by_field_name("type")
    if named is not None and named.type == "generic_type":
        named = named.child_by_field_name("type")
    trait = node.child_by_field_name("trait")
    return Found(TRANSPARENT, words=place.text(named), bases=(trait,) if trait is not None else ())


def rust_mod(node: Node, _: Place) -> Found | None:
    """A module that stands in this file."""
    return None if node.child_by_field_name("body") is None else by_name(MODULE, node)


def ruby_singleton_class(_: Node, __: Place) -> Found | None:
    """`class << self`: its methods are the class's own."""
    return Found(TRANSPARENT)


def ruby_assignment(node: Node, place: Place) -> Found | None:
    """`NAME = ...`."""
    left = node.child_by_field_name("left")
    if place.local or left is None or left.type != "constant":
        return None
    return Found(CONSTANT, left)


def php_const(node: Node, place: Place) -> Found | None:
    """A constant of a class or a file."""
    children = node.named_children
    return Found(CONSTANT, children[0]) if children and not place.local else None


def php_property(node: Node, place: Place) -> Found | None:
    """A property of a class, without its dollar sign."""
    return Found(PROPERTY, words=place.text(node.child_by_field_name("name")).lstrip("$"))


def class_value(node: Node, place: Place) -> Found | None:
    """A field of a Java or C# class."""
    name = node.child_by_field_name("name")
    if name is None or place.kind not in CLASS_LIKE:
        return None
    return Found(value_kind(place.text(name), place), name)


def dotted_module(node: Node, place: Place) -> Found | None:
    """A namespace, whose name can have several parts."""
    name = node.child_by_field_name("name")
    words = place.text(name).replace("::", ".").replace("\\", ".")
    return Found(TRANSPARENT, words=words, body=node.child_by_field_name("body"))


def c_with_body(node: Node, _: Place) -> Found | None:
    """A struct, union, enum or class that is defined here and not only mentioned."""
    body = node.child_by_field_name("body")
    kinds = {"class_specifier": "class", "enum_specifier": "enum"}
    return None if body is None else by_name(kinds.get(node.type, STRUCT), node)


def c_function(node: Node, place: Place) -> Found | None:
    """A function with its body; `Outer::name` is outside of the class it belongs to."""
    found = _c_declared(node, place, FUNCTION)
    if found is None:
        return None
    body = node.child_by_field_name("body")
    return Found(found.kind, found.name, words=found.words, body=body, outer=found.outer)


def c_declaration(node: Node, place: Place) -> Found | None:
    """A prototype, or a variable that belongs to no function."""
    if place.local:
        return None
    if _declarator(node, "function_declarator") is not None:
        return _c_declared(node, place, PROTOTYPE)
    found = _c_declared(node, place, VARIABLE)
    if found is None or node.type == "field_declaration":
        return found if found is None else Found(PROPERTY, found.name)
    return Found(value_kind(place.text(found.name), place), found.name)


def c_typedef(node: Node, place: Place) -> Found | None:
    """The name that a typedef gives."""
    return _c_declared(node, place, TYPE)


def _c_declared(node: Node, place: Place, kind: str) -> Found | None:
    """The name inside of pointers, brackets and parameter lists."""
    inner = node.child_by_field_name("declarator")
    outer: list[str] = []
    for _step in range(DECLARATORS_MAX):
        if inner is None:
            return None
        if inner.type in DECLARED:
            in_class = bool(outer) and kind == FUNCTION
            return Found(METHOD if in_class else kind, inner, outer=tuple(outer))
        if inner.type == "qualified_identifier":
            outer.append(place.text(inner.child_by_field_name("scope")).partition("<")[0])
            inner = inner.child_by_field_name("name")
            continue
        held = inner.child_by_field_name("declarator") or inner.child_by_field_name("name")
        inner = held or (inner.named_children[-1] if inner.named_children else None)
    return None


def _declarator(node: Node, kind: str) -> Node | None:
    inner = node.child_by_field_name("declarator")
    for _ in range(DECLARATORS_MAX):
        if inner is None or inner.type == kind:
            return inner
        inner = inner.child_by_field_name("declarator")
    return None


def _first_of(node: Node, kind: str) -> Node | None:
    """The first node of a type inside a small one."""
    waiting = [node]
    for _ in range(DECLARATORS_MAX):
        if not waiting:
            return None
        inner = waiting.pop(0)
        if inner.type == kind:
            return inner
        waiting += inner.named_children
    return None
