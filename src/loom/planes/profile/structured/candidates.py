"""Values of a kind that a clause holds, each with its place and how plainly it is one."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from loom.canonical import Json
from loom.planes.profile.structured import assertions, cues, units, words
from loom.planes.profile.structured.codes import COUNTRIES, LANGUAGES
from loom.planes.profile.structured.flags import Mark
from loom.planes.profile.structured.phrases import ACRONYM_MAX, Phrases
from loom.planes.profile.structured.properties import Kind, Wanted
from loom.planes.profile.structured.statements import Candidate, Clause
from loom.planes.profile.structured.words import Token

GRAM_MAX: Final = 4
FOUND_MAX: Final = 128
"""Properties for which a clause keeps what was found in it."""

CODE_CHARACTERS_MAX: Final = 64
CODES_MAX: Final = 12
SHORT_MAX: Final = 2
"""A choice of so few letters is met only as it is spelled, or in capitals."""

OTHER_NOUN: Final = -0.5
"""The fit of a number beside a noun that the property does not name: less wrong than another unit."""


_EMAIL: Final = re.compile(
    r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,6}(?!\w)"
)
_URL: Final = re.compile(r"https?://[^\s<>\"'()]{1,500}")
_FROM: Final = re.compile(
    r"(?:\binstead of|\brather than|\bnot|\bover|\bwas|\bused|\bnot (?:a|an|the)"
    r"|\bwithout|\bexcept|\bbut not|\bno)\W{1,3}\Z",
    re.IGNORECASE,
)
_ORIGIN: Final = re.compile(r"\b(?:from|von|desde|de)\W{1,3}(?:\w+\W){0,1}\Z", re.IGNORECASE)
_GOING: Final = re.compile(r"\b(?:to|auf|nach|zu|a|al)\b", re.IGNORECASE)
_LEAVING: Final = re.compile(
    r"(?:\binstead of|\brather than|\bexcept(?: for)?|\bbut not|\bunlike|\bunder|\bolder than)\W{1,3}(?:\w+\W){0,1}\Z",
    re.IGNORECASE,
)
_DELTA: Final = re.compile(
    r"\b(?:add(?:s|ed|ing)?|another|extra|additional|further|gained|bought|sold|hired|ordered|plus|by|first|every|within|after|before|page|room|version|chapter)\W+\Z",
    re.IGNORECASE,
)
_DELTA_AFTER: Final = re.compile(
    r"\A\W{0,2}(?:more|extra|additional|others?|fewer|less|of (?:them|which|these|those|whom)"
    r"|ago|old|pm|am|th|st|nd|rd|further)\b",
    re.IGNORECASE,
)
_CLOCK: Final = re.compile(r"\A:\d|\A ?(?:am|pm|o'clock|uhr)\b", re.IGNORECASE)
_SCALE: Final = re.compile(
    r"\A ?(?:/|of|out of|von|de) ?(\d{1,3})(?!\d)|\A ?-? ?(?:stars?|sterne|estrellas)\b", re.IGNORECASE
)
_SYSTEM_BEFORE: Final = re.compile(r"\b(US|UK|EU|EUR)(?: size)? ?\Z")
_SYSTEM_AFTER: Final = re.compile(r"\A ?(US|UK|EU|EUR)\b(?! ?(?:dollars?|\$))")
_OF: Final = re.compile(r"\d ?(?:/|of|out of|von|de|or|oder|to|bis|-|\u2013) ?\Z", re.IGNORECASE)
_SPANS: Final = re.compile(r"\A ?(?:-|\u2013|to|bis|or|oder|a) ?\d|\A ?%", re.IGNORECASE)
_PEOPLE: Final = re.compile(r"\A (?:of us|people|persons|colleagues|members|engineers|developers)\b", re.IGNORECASE)
_YEAR: Final = range(1900, 2101)


def found(one: Wanted, clause: Clause) -> Sequence[Candidate]:
    """The values in `clause` that `one` could have; of a list, the items."""
    reader = _READERS.get(one.kind)
    if reader is None:
        return ()
    kept = clause.found.get(id(one))
    if kept is None or kept[0] is not one:
        kept = (one, tuple(reader(one, clause)))
        if len(clause.found) >= FOUND_MAX:
            clause.found.clear()
        clause.found[id(one)] = kept
    return kept[1]


def _emails(_: Wanted, clause: Clause) -> Iterator[Candidate]:
    for match in _EMAIL.finditer(clause.text):
        yield Candidate(match[0].rstrip(".-"), match.start(), match.end(), 1.0)


def _urls(_: Wanted, clause: Clause) -> Iterator[Candidate]:
    for match in _URL.finditer(clause.text):
        yield Candidate(match[0].rstrip(".,;:!?"), match.start(), match.end(), 1.0)


def _dates(_: Wanted, clause: Clause) -> Iterator[Candidate]:
    for day in clause.days:
        yield Candidate(day.day.isoformat(), day.start, day.end, 1.0)


def _numbers(one: Wanted, clause: Clause) -> Iterator[Candidate]:
    dated = [(day.start, day.end) for day in clause.days]
    topic = one.strong | one.described | one.all_stems
    for amount in clause.amounts:
        before, after = clause.text[: amount.start], clause.text[amount.end :]
        if any(low <= amount.start < high for low, high in dated) or _CLOCK.match(after) or _SPANS.match(after):
            continue
        if _OF.search(before[-12:]) or _DELTA.search(before[-24:]) or _DELTA_AFTER.match(after):
            continue
        value = units.converted(amount, one.units, one.description)
        if value is None or value != value or (one.integer and value != int(value)):  # noqa: PLR0124 - not a number
            continue
        scale = _SCALE.match(after)
        fit = _fit(one, amount, scale, topic, (before, after))
        number: Json = int(value) if value == int(value) else value
        if number in _YEAR and fit <= 0 and "year" not in words.stems(one.description) | one.all_stems:
            continue
        yield Candidate(number, amount.start, amount.end, 0.5, fit, _left_behind(clause.text, amount.start))


def _fit(
    one: Wanted, amount: units.Amount, scale: re.Match[str] | None, topic: frozenset[str], around: tuple[str, str]
) -> float:
    """Whether what stands beside a number is what the property counts or measures in."""
    before, after = around
    system = _SYSTEM_BEFORE.search(before[-12:]) or _SYSTEM_AFTER.match(after)
    if system and not amount.unit and one.system:
        return 1.0 if system[1].casefold()[:2] == one.system else -1.0
    if scale:
        highest = one.schema.get("maximum")
        return 1.0 if highest is not None and (scale[1] is None or float(scale[1]) == highest) else -1.0
    if amount.unit:
        return 1.0 if one.units and units.converted(amount, one.units, one.description) is not None else -1.0
    if one.units and not amount.unit and not amount.noun and _labelled(one, before):
        return 1.0
    if one.units and not amount.unit and amount.noun and not (words.stems(amount.noun) & topic):
        return 0.0 if amount.noun in _NEUTRAL else -1.0
    return _counts(one, amount, topic, after)


def _counts(one: Wanted, amount: units.Amount, topic: frozenset[str], after: str) -> float:
    """Whether the word after a number is what the property counts."""
    if _PEOPLE.match(after) and "peopl" in topic | words.stems(one.description):
        return 1.0
    if amount.noun and amount.noun not in _NEUTRAL:
        nouns = [match[0] for match in _NOUNS.finditer(after[:40])][:3]
        return 1.0 if any(words.stems(noun) & topic for noun in nouns) else OTHER_NOUN
    return 0.0


def _labelled(one: Wanted, before: str) -> bool:
    """Whether what stands before a colon, or before `is`, names the unit."""
    label = re.search(r"([^.:;]{0,60})(?::| is| are)\s*\Z", before[-70:])
    return label is not None and any(units.unit_of(match[0]) in one.units for match in _NOUNS.finditer(label[1]))


_NOUNS: Final = re.compile(r"[^\W\d_]+")
_NEUTRAL: Final = cues.words("neutral")


def _choices(one: Wanted, clause: Clause) -> Iterator[Candidate]:
    yield from _grams(one.phrases, clause, one.all_stems)


def _grams(phrases: Phrases, clause: Clause, topic: frozenset[str] = frozenset()) -> Iterator[Candidate]:
    """The longest runs of words that are ways of writing a choice."""
    tokens = clause.tokens
    stemmed = phrases.stemmed
    place = 0
    while place < len(tokens):
        for length in range(min(GRAM_MAX, len(tokens) - place), 0, -1):
            first, last = tokens[place], tokens[place + length - 1]
            if last.end - first.start > CODE_CHARACTERS_MAX:
                continue
            raw = clause.text[first.start : last.end]
            if "," in raw or "/" in raw:
                continue
            choice = phrases.get(words.plain(raw))
            if choice is None and length == 1:
                choice = next(
                    (stemmed[stem] for stem in sorted(first.stems) if stem in stemmed and stem not in topic), None
                )
            short = choice is not None and len(choice) <= SHORT_MAX and words.plain(raw) == words.plain(choice)
            if short and choice is not None and raw not in (choice, choice.capitalize(), choice.upper()):
                choice = None
            if choice is None and length == 1 and raw.isalpha():
                choice = next(
                    (
                        phrases[raw[:size].casefold()]
                        for size in range(len(raw) - 3, 4, -1)
                        if raw[:size].casefold() in phrases
                    ),
                    None,
                )
                if choice is not None:
                    yield Candidate(choice, first.start, last.end, 0.1, 0.0, _left_behind(clause.text, first.start))
                    break
            if choice is not None:
                yield Candidate(
                    choice,
                    first.start,
                    last.end,
                    _plainness(raw, place, choice),
                    0.0,
                    _left_behind(clause.text, first.start),
                )
                place += length - 1
                break
        place += 1


def _left_behind(text: str, start: int) -> bool:
    before = text[:start][-24:]
    if _ORIGIN.search(before) and _GOING.search(text[start:]):
        return True
    return bool(_LEAVING.search(before)) or bool(_FROM.search(before))


def _plainness(raw: str, place: int, choice: str) -> float:
    """1.0 for a name or a word that is rarely anything else, less for a short or common one."""
    if words.plain(choice) in _COMMON or len(words.plain(choice)) <= ACRONYM_MAX:
        return 0.6 if place > 0 and raw[:1].isupper() else 0.2
    return 1.0


_COMMON: Final = cues.words("common")
"""Choices that are words of everyday text, so that their being there says little."""


def _codes(one: Wanted, clause: Clause) -> Iterator[Candidate]:
    pattern = one.schema.get("pattern")
    if not isinstance(pattern, str):
        return
    left = CODES_MAX
    for match in _CHUNK.finditer(clause.text):
        if left <= 0 or len(match[0]) > CODE_CHARACTERS_MAX or not _CODE_LIKE.search(match[0]):
            continue
        left -= 1
        if assertions.matches(pattern, match[0]):
            yield Candidate(match[0], match.start(), match.end(), 0.8, 0.0, _left_behind(clause.text, match.start()))


_CHUNK: Final = re.compile(r"[A-Za-z0-9_][\w/+.:-]*[\w+]")
_CODE_LIKE: Final = re.compile(r"[0-9_/]|[A-Z]{2}|[a-z][A-Z]")


def _countries(_: Wanted, clause: Clause) -> Iterator[Candidate]:
    yield from _named(_COUNTRY_PHRASES, clause)


def _languages(_: Wanted, clause: Clause) -> Iterator[Candidate]:
    yield from _named(_LANGUAGE_PHRASES, clause)


def _named(phrases: Phrases, clause: Clause) -> Iterator[Candidate]:
    if clause.text.strip(" .") in phrases.values():
        yield Candidate(clause.text.strip(" ."), 0, len(clause.text), 1.0)
    for one in _grams(phrases, clause):
        if clause.text[one.start].isupper() or not clause.text[one.start : one.end].isascii() or one.start == 0:
            yield Candidate(one.value, one.start, one.end, 0.8, 0.0, one.leaving)


_COUNTRY_PHRASES: Final = Phrases((words.plain(name), code) for name, code in COUNTRIES.items())
_LANGUAGE_PHRASES: Final = Phrases((words.plain(name), code) for name, code in LANGUAGES.items())


def code_of(kind: Kind, text: str) -> str | None:
    """The code of a country or a language that `text` names or is."""
    phrases = _COUNTRY_PHRASES if kind is Kind.COUNTRY else _LANGUAGE_PHRASES
    known = phrases.get(words.plain(text))
    return known or (text if text in phrases.values() else None)


_YES: Final = cues.pattern("yes")
_NO: Final = cues.pattern("no")
_HALFWAY: Final = cues.pattern("halfway")


def _booleans(_: Wanted, clause: Clause) -> Iterator[Candidate]:
    if _HALFWAY.search(clause.text):
        return
    no, yes = _NO.search(clause.text), _YES.search(clause.text)
    if no:
        yield Candidate(value=False, start=no.start(), end=no.end(), plain=1.0)
    elif yes:
        yield Candidate(value=True, start=yes.start(), end=yes.end(), plain=1.0)
    elif not clause.bears(Mark.DENIED | Mark.ENDED):
        yield Candidate(value=True, start=0, end=len(clause.text), plain=0.0)


def _items(one: Wanted, clause: Clause) -> Iterator[Candidate]:
    if one.items is not None and one.items.kind in (Kind.CHOICE, Kind.LANGUAGE, Kind.COUNTRY, Kind.EMAIL, Kind.URL):
        yield from found(one.items, clause)


_READERS: Final[Mapping[Kind, Callable[[Wanted, Clause], Iterator[Candidate]]]] = {
    Kind.EMAIL: _emails,
    Kind.URL: _urls,
    Kind.DATE: _dates,
    Kind.NUMBER: _numbers,
    Kind.CHOICE: _choices,
    Kind.CODE: _codes,
    Kind.COUNTRY: _countries,
    Kind.LANGUAGE: _languages,
    Kind.BOOLEAN: _booleans,
    Kind.LIST: _items,
}


def near(tokens: Sequence[Token], stems: frozenset[str], start: int, end: int, reach: int) -> bool:
    """Whether a word of `stems` stands within `reach` words of a place."""
    inside = [place for place, token in enumerate(tokens) if token.start < end and token.end > start]
    if not inside:
        return False
    low, high = inside[0] - reach, inside[-1] + reach
    return any(
        low <= place <= high and place not in inside and tokens[place].stems & stems for place in range(len(tokens))
    )
