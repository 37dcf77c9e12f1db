"""Whole dates in text, in English, German, Spanish and Chinese."""

import re
from datetime import date
from typing import Final

from loom.retrieval import dates
from loom.retrieval.dates import WrittenDay

_GERMAN: Final = [
    "januar",
    "februar",
    "märz",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
]
_SPANISH: Final = [
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
]
_MONTHS: Final = {name: place % 12 + 1 for place, name in enumerate((*_GERMAN, *_SPANISH))} | {"setiembre": 9}
_NAMED: Final = re.compile(
    rf"(?<![\w.])(?P<day>[0-3]?[0-9])(?:\.| de|º de)? (?P<month>{'|'.join(_MONTHS)})"
    r"(?: de| del)? (?P<year>(?:19|20)[0-9]{2})(?!\w)",
    re.IGNORECASE,
)
_CHINESE: Final = re.compile(
    r"(?P<year>(?:19|20)[0-9]{2}) ?年 ?(?P<month>[01]?[0-9]) ?月 ?(?P<day>[0-3]?[0-9]) ?[日号]"
)
_ISO: Final = re.compile(r"(?<![\d-])(?P<year>(?:19|20)[0-9]{2})-(?P<month>[01][0-9])-(?P<day>[0-3][0-9])(?![\d-])")
_WEEKDAY: Final = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,? ", re.IGNORECASE)


def days(text: str) -> list[WrittenDay]:
    """The dates that `text` writes out whole, in order."""
    found = {one.start: one for one in dates.written_days(text)}
    for pattern in (_ISO, _NAMED, _CHINESE):
        for match in pattern.finditer(text):
            month = match["month"].casefold()
            try:
                day = date(int(match["year"]), _MONTHS.get(month) or int(month), int(match["day"]))
            except ValueError:  # no such day
                continue
            if not any(one.start < match.end() and match.start() < one.end for one in found.values()):
                found[match.start()] = WrittenDay(day, match.start(), match.end())
    return [found[start] for start in sorted(found)]
