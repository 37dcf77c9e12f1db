"""The value of a statement whose key, tag or field names the property."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loom.canonical import Json
from loom.planes.profile.structured import candidates, cues, readings, units, words
from loom.planes.profile.structured.flags import Mark
from loom.planes.profile.structured.properties import Kind, Wanted
from loom.planes.profile.structured.readings import Named, Reading
from loom.planes.profile.structured.statements import Statement, label_of

NAME_CHARACTERS_MAX: Final = 120
NAME_WORDS_MAX: Final = 6
_LIST_SPLIT: Final = re.compile(r",\s*(?:and |y |und )?|;\s*|\s+(?:and|und|y)\s+")
_VERBLIKE: Final = re.compile(
    r"(?<!\w)(?:is|are|was|were|has|have|had|does|do|can|will|the|a|an|his|her|their|my|since|for|on|at|by|in|to)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A value, and the words that gave it."""

    value: Json
    text: str


def value_named(one: Wanted, statement: Statement, how: Named) -> Told | None:
    """The value that a statement gives the property that it names; None where it gives none for sure."""
    leaf = statement.leaf
    if not isinstance(leaf, str):
        value = _converted(one, leaf, statement)
        return None if value is None or readings.foreign(one, statement) else Told(value, statement.quoted)
    if one.kind is Kind.TEXT:
        return _text(one, statement, how)
    if one.kind is Kind.LIST:
        return _list(one, statement, how)
    if one.kind is Kind.BOOLEAN:
        return _boolean(one, statement, how)
    found = list(readings.readings(one, statement))
    loose = how is Named.EXACT and len(one.strong) == 1
    found = [each for each in found if each.candidate.unit >= (candidates.OTHER_NOUN if loose else 0)]
    if how < Named.EXACT:
        found = [each for each in found if not readings.another_role(one, each.clause)]
    if one.aim and one.kind in (Kind.NUMBER, Kind.CHOICE) and how < Named.EXACT:
        found = [each for each in found if readings.aimed(one, each.clause, statement)]
    best = readings.chosen(found)
    return None if best is None else Told(best.candidate.value, said(statement, best))


def said(statement: Statement, reading: Reading) -> str:
    """The sentence that gave a value, with its field's name."""
    sentence = reading.clause.sentence.strip()
    return f"{statement.fields[-1]}: {sentence}" if statement.fields else sentence


def _boolean(one: Wanted, statement: Statement, how: Named) -> Told | None:
    found = readings.readings(one, statement)
    plain = [each for each in found if each.candidate.plain >= 1.0]
    if not plain and how is Named.EXACT:
        plain = [each for each in found if one.strong & each.clause.stems]
    best = readings.chosen(plain)
    return None if best is None else Told(best.candidate.value, said(statement, best))


def _converted(one: Wanted, leaf: Json, statement: Statement) -> Json:
    """A plain JSON value as one of the property's kind."""
    if isinstance(leaf, bool):
        return leaf if one.kind is Kind.BOOLEAN else None
    if isinstance(leaf, int | float):
        return _number(one, float(leaf), statement) if one.kind is Kind.NUMBER else None
    if isinstance(leaf, list) and one.kind is Kind.LIST:
        return _each(one, leaf)
    return None


def _number(one: Wanted, number: float, statement: Statement) -> Json:
    if not math.isfinite(number):
        return None
    named = units.asked(statement.field_words or statement.key_words, "")
    if named and one.units and not named & one.units:
        amount = units.Amount(number, min(named), "", 0, 0)
        converted = units.converted(amount, one.units, one.description)
        if converted is None:
            return None
        number = converted
    if one.integer and number != int(number):
        return None
    return int(number) if number == int(number) else number


def _each(one: Wanted, leaves: Sequence[Json]) -> Json:
    """A JSON list with each item as one that the list may hold; None if one is not."""
    made: list[Json] = []
    for leaf in leaves:
        item = leaf
        if isinstance(leaf, str) and one.items is not None and one.items.kind is Kind.CHOICE:
            item = one.items.phrases.get(words.plain(leaf))
        elif isinstance(leaf, str) and one.items is not None and one.items.kind in (Kind.COUNTRY, Kind.LANGUAGE):
            item = candidates.code_of(one.items.kind, leaf)
        if item is None:
            return None
        if item not in made:
            made.append(item)
    return made


def _list(one: Wanted, statement: Statement, how: Named) -> Told | None:
    if one.items is None:
        return None
    if one.items.kind in (Kind.TEXT, Kind.CODE):
        return _free_list(one, statement, how)
    found = readings.readings(one, statement)
    items = list(dict.fromkeys(str(each.candidate.value) for each in found))
    if items:
        return Told(list[Json](items), " ".join(dict.fromkeys(said(statement, each) for each in found)))
    return empty(one, statement, how)


def empty(one: Wanted, statement: Statement, how: Named) -> Told | None:
    """An empty list, where the schema says that a denial is one and the statement denies all of it."""
    if not one.empty_allowed or readings.foreign(one, statement):
        return None
    for clause in statement.clauses:
        if readings.guarded(one, clause) or not clause.bears(Mark.DENIED) or clause.bears(Mark.ENDED):
            continue
        topical = (one.strong | one.described) & clause.stems
        if (
            _ALL_DENIED.match(clause.text.strip())
            and (topical or how >= Named.WHOLE)
            and not candidates.found(one, clause)
        ):
            return Told([], clause.sentence.strip())
    return None


_ALL_DENIED: Final = re.compile(
    r"(?:(?:\w+ )?(?:has|have|there is|there are) )?(?:no|none|nothing|not any|without|keine?|ningun[oa]?)(?!\w)",
    re.IGNORECASE,
)


def _free_list(one: Wanted, statement: Statement, how: Named) -> Told | None:
    text = statement.text.strip().rstrip(".")
    if how < Named.EXACT or any(readings.guarded(one, clause) or clause.bears(_BAD) for clause in statement.clauses):
        return None
    items = [item.strip() for item in _LIST_SPLIT.split(text) if item.strip()]
    if not items or any(_VERBLIKE.search(item) or item.count(" ") >= NAME_WORDS_MAX // 2 for item in items):
        return None
    return Told(list[Json](dict.fromkeys(items)), statement.quoted)


_BAD: Final = Mark.DENIED | Mark.ENDED | Mark.UNSURE


def _text(one: Wanted, statement: Statement, how: Named) -> Told | None:
    """A name that is text: the whole of a short value, what follows a label, or the only name in it."""
    if how < Named.WHOLE or readings.foreign(one, statement):
        return None
    open_clauses = [
        clause
        for clause in statement.clauses
        if not readings.guarded(one, clause) and not clause.bears(Mark.ENDED | Mark.DENIED)
    ]
    if len(open_clauses) == len(statement.clauses):
        whole = statement.text.strip()
        label = label_of(whole)
        if label and words.stems(label) & one.all_stems:
            whole = whole[len(label) + 1 :].strip()
        whole = whole.rstrip(".")
        if _is_name(whole) and _spelled(one, whole):
            return Told(whole, statement.quoted)
        if statement.fields and how is Named.EXACT and 0 < len(whole) <= NAME_CHARACTERS_MAX:
            return Told(whole, statement.quoted)
    names = {name: clause for clause in open_clauses for name in _outside_dates(clause.text)}
    if len(names) == 1 and _spelled(one, next(iter(names))):
        name, clause = next(iter(names.items()))
        return Told(name, clause.sentence.strip())
    return None


def _outside_dates(text: str) -> Sequence[str]:
    return [name for name in readings.proper_names(text) if not any(char.isdigit() for char in name)]


def _spelled(one: Wanted, name: str) -> bool:
    """Whether a name may be in the language that the property asks for."""
    return "English name" not in one.description or (name.isascii() and name.casefold() not in _LOCAL_NAMES)


_LOCAL_NAMES: Final = cues.words("local_names")
"""Places as their own people write them, lower case, where English has another name."""


def _is_name(text: str) -> bool:
    return (
        0 < len(text) <= NAME_CHARACTERS_MAX
        and text.count(" ") < NAME_WORDS_MAX
        and not _VERBLIKE.search(text)
        and (text[:1].isupper() or not text.isascii() or " " not in text)
        and not any(mark in text for mark in ".;:!?,\n")
        and (
            " " not in text
            or all(word[:1].isupper() or word in ("&", "of", "de", "and", "la", "van", "von") for word in text.split())
        )
    )


def part_value(one: Wanted, parent: Wanted, statement: Statement) -> Told | None:
    """The value of a part, from a statement about the whole."""
    if statement.fields and statement.fields[-1].casefold() != parent.name.casefold():
        return None
    leaf = statement.leaf
    if not isinstance(leaf, str):
        return None
    if one.kind is Kind.TEXT:
        rivals = [part for part in parent.parts if part.kind is Kind.TEXT]
        return (
            _text(one, statement, Named.WHOLE)
            if len(rivals) == 1 and not readings.proper_names(label_of(leaf))
            else None
        )
    found = list(readings.readings(one, statement))
    rivals = [part for part in parent.parts if part.kind is one.kind]
    if one.kind is Kind.NUMBER:
        counted = bool(one.strong & statement.stems)
        found = [each for each in found if each.candidate.unit > 0 or (each.candidate.unit == 0 and counted)]
    elif one.kind is Kind.BOOLEAN:
        found = [each for each in found if each.candidate.plain >= 1.0 and one.strong <= each.clause.stems]
    elif len(rivals) > 1:
        found = [each for each in found if each.near]
    best = readings.chosen(found)
    return None if best is None else Told(best.candidate.value, said(statement, best))
