"""What a statement could say about a property: named or not, with what guards leave of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final

from loom.canonical import Json
from loom.planes.profile.structured import candidates, cues, flags, words
from loom.planes.profile.structured.candidates import Candidate
from loom.planes.profile.structured.flags import Mark
from loom.planes.profile.structured.properties import Kind, Wanted
from loom.planes.profile.structured.statements import Clause, Statement
from loom.planes.profile.structured.words import Token

NEAR_WORDS: Final = 3
_GOAL: Final = cues.pattern("goal")
_LIMIT: Final = re.compile(
    r"(?:\bnot|n['\u2019]t|\bnever|\bno|\bnicht) (?:\w+ ){0,4}?(?:more|over|above|beyond|exceed|past|higher|mehr)\b",
    re.IGNORECASE,
)
"""A limit is said by denying what is above it."""
_TOTAL: Final = cues.pattern("total")
_TOLERATES: Final = cues.pattern("tolerates")
_REFUSES: Final = cues.pattern("refused")


class Named(IntEnum):
    """How a statement's key, tag or field names a property."""

    NOT = 0
    HEAD = 1
    """The last topical word of the property's name is there."""
    WHOLE = 2
    """Every topical word is there."""
    EXACT = 3
    """Nothing but the property's name, or a tag that names it."""


@dataclass(frozen=True)
class Reading:
    """A value that a statement could give a property.

    Attributes:
        clause: where it stands.
        candidate: the value.
        near: whether a topical word stands beside it.
    """

    clause: Clause
    candidate: Candidate
    near: bool


def named(one: Wanted, statement: Statement) -> Named:
    """How `statement` names the property that `one` is, or is a part of when it is no part itself."""
    if len(one.path) == 1 and one.name.casefold() in statement.tagged:
        return Named.EXACT
    if statement.fields:
        return _of_words(one, tuple(words.name_words(statement.fields[-1])), statement.name_stems, exact_only=True)
    if len(one.path) > 1:
        return Named.NOT
    return _of_words(one, statement.key_words, statement.name_stems, exact_only=False)


def _of_words(one: Wanted, name: tuple[str, ...], stems: frozenset[str], *, exact_only: bool) -> Named:
    if name == one.words:
        return Named.EXACT
    here = frozenset[str]().union(*(words.stems(word) for word in name)) if exact_only else stems
    if one.strong <= here:
        return Named.WHOLE
    return Named.HEAD if one.head and one.head <= here else Named.NOT


def within(parent: Wanted, statement: Statement) -> bool:
    """Whether `statement` is about the object `parent` as a whole."""
    if parent.name.casefold() in statement.tagged:
        return True
    names = (*statement.key_words, *(word for name in statement.fields[:-1] for word in words.name_words(name)))
    return parent.strong <= frozenset[str]().union(*(words.stems(word) for word in names))


def foreign(one: Wanted, statement: Statement) -> bool:
    """Whether the statement's key says that it is about somebody else."""
    return bool({kin for kin in statement.kin if not words.stems(kin) & (one.all_stems | one.described)})


def guarded(one: Wanted, clause: Clause) -> bool:
    """Whether a clause settles nothing about `one`: another person's, unsure, or a wish where a fact is asked for."""
    if clause.bears(Mark.UNSURE):
        return True
    if any(not _asked_of(one, other) for other in clause.others):
        return True
    if one.words[:1] and _other_turn(one, clause):
        return True
    if clause.bears(Mark.WISH) and not one.aim:
        return not one.wish or bool(_GOAL.search(clause.text))
    return False


def told_of_another(one: Wanted, clause: Clause) -> bool:
    """Whether a clause tells of another thing's property, or of an address for another purpose."""
    return of_another_thing(one, clause) or another_role(one, clause)


def of_another_thing(one: Wanted, clause: Clause) -> bool:
    """Whether a name before the property's noun says that it is some other thing's: `the CI plan`, `our GitHub plan`.

    A name that the property or one of its choices has, as in `the Pro plan`, says nothing of the kind.
    """
    tokens = clause.tokens
    for place in range(1, len(tokens)):
        if not tokens[place].stems & one.head:
            continue
        before = place - 1
        while before > 0 and words.plain(tokens[before].text) in one.phrases:
            before -= 1
        if _is_other_name(one, clause, tokens[before], first=before == 0):
            return True
    return False


def _is_other_name(one: Wanted, clause: Clause, token: Token, *, first: bool) -> bool:
    text = token.text
    named = text.isupper() and text.isalpha() if first else text[:1].isupper()
    known = token.stems & one.told or text.casefold() in words.FUNCTION or words.plain(text) in one.phrases
    return named and len(text) > 1 and not known and clause.text[token.end : token.end + 1] == " "


def another_role(one: Wanted, clause: Clause) -> bool:
    """Whether an address is told for a purpose that the property does not ask for, such as invoices."""
    if one.kind not in (Kind.EMAIL, Kind.URL):
        return False
    return any(token.text.casefold() in _ROLES and not token.stems & one.told for token in clause.tokens)


_ROLES: Final = cues.words("address_roles")


def _other_turn(one: Wanted, clause: Clause) -> bool:
    """Whether the next is asked for and the clause tells of the last, or the other way round."""
    name = set(one.words)
    if name & {"next", "upcoming"}:
        return _LAST.search(clause.text) is not None
    return bool(name & {"last", "previous", "latest"}) and _NEXT.search(clause.text) is not None


_LAST: Final = cues.pattern("last")
_NEXT: Final = cues.pattern("next")


def _asked_of(one: Wanted, other: str) -> bool:
    """Whether the property is about `other`, or `other` is the name of one of its choices."""
    if other == flags.ANOTHER:
        return False
    return bool(words.stems(other) & (one.all_stems | one.described)) or words.plain(other) in one.phrases


def readings(one: Wanted, statement: Statement) -> Sequence[Reading]:
    """The values that `statement` could give `one`, guards applied; what is denied or over is left out."""
    if foreign(one, statement):
        return []
    made: list[Reading] = []
    for clause in statement.clauses:
        found = candidates.found(one, clause)
        if not found or guarded(one, clause):
            continue
        for candidate in found:
            if not _stands(one, clause, candidate):
                continue
            near = candidates.near(clause.tokens, one.strong, candidate.start, candidate.end, NEAR_WORDS)
            made.append(Reading(clause, candidate, near))
    if one.kind is not Kind.LIST and len({str(each.candidate.value) for each in made}) > 1:
        made = [each for each in made if not flags.is_vague(each.clause.sentence)]
    return made


def _stands(one: Wanted, clause: Clause, candidate: Candidate) -> bool:
    """Whether the clause says that the value is so."""
    if one.kind is Kind.BOOLEAN:
        return True
    if one.kind is Kind.LIST and one.refusal:
        refused = _REFUSES.search(clause.sentence) is not None
        return not clause.bears(Mark.ENDED) and not (
            _TOLERATES.search(clause.text) and refused and not _REFUSES.search(clause.text[: candidate.start])
        )
    if one.kind is Kind.NUMBER and _LIMIT.search(clause.text):
        return not candidate.leaving
    return not candidate.leaving and not clause.bears(Mark.ENDED | Mark.DENIED)


def ended(one: Wanted, statement: Statement) -> list[tuple[Clause, Sequence[Json]]]:
    """The clauses that say that something of `one` is over or not so, with the values they name."""
    if foreign(one, statement):
        return []
    made: list[tuple[Clause, Sequence[Json]]] = []
    for clause in statement.clauses:
        over = clause.bears(Mark.ENDED if one.refusal else Mark.ENDED | Mark.DENIED)
        if over and not guarded(one, clause):
            made.append((clause, [each.value for each in candidates.found(one, clause)]))
    return made


def chosen(found: Sequence[Reading]) -> Reading | None:
    """The one value of a statement that names its property; None where several are left."""
    for better in _BETTER:
        kept = [each for each in found if better(each)]
        if kept and len({str(each.candidate.value) for each in kept}) == 1:
            return kept[0]
        found = kept or found
    return None


def _always(_: Reading) -> bool:
    return True


def _counted(one: Reading) -> bool:
    return one.candidate.unit > 0


def _beside(one: Reading) -> bool:
    return one.near


def _total(one: Reading) -> bool:
    return _TOTAL.search(one.clause.text) is not None


def _turned(one: Reading) -> bool:
    return one.clause.bears(Mark.TURN)


def _present(one: Reading) -> bool:
    return not one.clause.bears(Mark.PAST)


_BETTER: Final = (_always, _counted, _beside, _total, _turned, _present)
"""What is asked of several values in turn, until one is left."""


def aimed(one: Wanted, clause: Clause, statement: Statement) -> bool:
    """Whether a clause tells what somebody aims at."""
    return (
        (one.aim and clause.bears(Mark.WISH))
        or bool(_GOAL.search(clause.sentence))
        or bool(_GOAL.search(" ".join(statement.key_words)))
    )


@lru_cache(maxsize=4096)
def proper_names(text: str) -> tuple[str, ...]:
    """The runs of capitalised words of a clause; a single first word is none."""
    runs: list[str] = []
    for match in _RUN.finditer(text):
        run = match[0]
        if match.start() == 0 and " " in run and run.split(" ", 1)[0].casefold() in _OPENERS:
            run = run.split(" ", 1)[1]
        elif match.start() == 0 and " " not in run:
            continue
        if run.casefold() not in _NO_NAMES:
            runs.append(run)
    return tuple(dict.fromkeys(runs))


_UPPER: Final = r"[A-ZÀ-ÖØ-Þ]"
_RUN: Final = re.compile(
    rf"{_UPPER}[\w'\u2019.-]*[\w](?:(?: (?:&|of|de|del|der|la|le|van|von|and)){{0,2}} {_UPPER}[\w'\u2019.-]*\w|(?: &) {_UPPER}[\w'\u2019.-]*\w|(?: {_UPPER})){{0,5}}"  # noqa: E501
)
_OPENERS: Final = cues.words("openers")
_NO_NAMES: Final = cues.words("no_names")

ALTERNATIVES: Final = re.compile(r"\s+(?:and|or|und|oder|y|o|&)\s+")
LISTED: Final = re.compile(r",\s*|\s+(?:and|or|plus|as well as|und|y|&)\s+")
_CLAUSE_WORDS: Final = cues.words("clause_words")
_ITEM_WORDS_MAX: Final = 4


def more_listed(found: Sequence[Reading], joint: re.Pattern[str]) -> bool:
    """Whether the sentence lists more than was understood: a short piece beside an item that holds none."""
    sentence = found[0].clause.sentence
    pieces = joint.split(sentence)
    known = [
        any(each.clause.text[each.candidate.start : each.candidate.end] in piece for each in found) for piece in pieces
    ]
    for place, piece in enumerate(pieces):
        beside = known[place - 1 : place] + known[place + 1 : place + 2]
        its = piece.strip(" .!").casefold().split()
        if not known[place] and any(beside) and 0 < len(its) <= _ITEM_WORDS_MAX and not _CLAUSE_WORDS & set(its):
            return True
    return False


def takes_stance(one: Wanted, clause: Clause) -> bool:
    """Whether an aim is asked for and told, or a refusal is asked for and told."""
    if one.kind is Kind.LIST and one.refusal:
        return _REFUSES.search(clause.sentence) is not None
    return one.aim and (clause.bears(Mark.WISH) or _GOAL.search(clause.sentence) is not None)
