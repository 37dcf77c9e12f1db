"""Finds the times a question names, and scores items by them.

Times are integer microseconds UTC, as in the store; intervals are half open.
English names of months and days, ISO dates, and dotted dates (7.5.2023) are known.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from loom.storage.indexes import Scored

INTERVALS_MAX: Final = 8
_TEXT_CHARACTERS_MAX: Final = 10_000
_DAY_US: Final = 86_400_000_000
_SCORE_MIN: Final = 0.05
_AGO_MAX: Final = 9_999
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:19|20)[0-9]{2})"
_WEEKDAY: Final = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_UNIT: Final = r"(?P<unit>day|week|month|year)"
_COUNT: Final = r"(?P<count>[0-9]{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_COUNTS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """From `start_us` up to, and without, `end_us`."""

    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class WrittenDay:
    """A whole date, its year included, and where it stands in the text."""

    day: date
    start: int
    end: int


_Days = tuple[date, date]
"""First day, and the day after the last."""


def intervals(text: str, now_us: int) -> list[Interval]:
    """The times that `text` names, in the order they stand there, at most 8.

    A date without a year is the last one that has begun by `now_us`; relative times ("last week",
    "3 days ago") count from there. What is no date (30 February) is passed over.
    """
    today = datetime.fromtimestamp(now_us / 1_000_000, tz=UTC).date()
    rest = text[:_TEXT_CHARACTERS_MAX].casefold()
    found: dict[Interval, int] = {}
    for pattern, read in _READERS:
        for match in pattern.finditer(rest):
            try:
                first, after = read(match, today)
            except (ValueError, OverflowError):  # no such day, or beyond the calendar
                continue
            found.setdefault(Interval(_us(first), _us(after)), match.start())
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    return sorted(found, key=lambda interval: (found[interval], interval))[:INTERVALS_MAX]


def written_days(text: str) -> list[WrittenDay]:
    """The dates that `text` writes out with day, month and year, in order, at most 8; nothing is worked out."""
    rest = text[:_TEXT_CHARACTERS_MAX].casefold()
    if len(rest) != len(text[:_TEXT_CHARACTERS_MAX]):  # a letter that folds into two: places would be off
        rest = text[:_TEXT_CHARACTERS_MAX].lower()
    found: dict[int, WrittenDay] = {}
    for pattern, read in _READERS:
        if read in (_iso_day, _named_day):
            for match in pattern.finditer(rest):
                try:
                    day, _ = read(match, date.min)
                except (ValueError, OverflowError):
                    continue
                found.setdefault(match.start(), WrittenDay(day, match.start(), match.end()))
    return [found[start] for start in sorted(found)][:INTERVALS_MAX]


def time_scores(named: Sequence[Interval], items: Iterable[tuple[int, Sequence[int]]]) -> list[Scored]:
    """How well each item's times fit the intervals, best first; items far off are left out.

    1.0 inside an interval; outside, it halves with each length of the interval (at least a day).

    Args:
        named: what `intervals` found.
        items: item id and its times in microseconds, for example `(valid_at, created_at)`.
    """
    scored = [
        Scored(item_id, max((_fit(one, at) for one in named for at in times), default=0.0)) for item_id, times in items
    ]
    return sorted((one for one in scored if one.score >= _SCORE_MIN), key=lambda one: (-one.score, one.item_id))


def day_words(at_us: int) -> str:
    """The day in English words, as questions name it: `Monday 8 May 2023`; empty outside of the calendar."""
    try:
        day = datetime.fromtimestamp(at_us / 1_000_000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{day:%A} {day.day} {day:%B} {day.year}"


def _fit(interval: Interval, at_us: int) -> float:
    if interval.start_us <= at_us < interval.end_us:
        return 1.0
    distance_us = max(interval.start_us - at_us, at_us - interval.end_us)
    return float(0.5 ** (1.0 + min(distance_us / max(interval.end_us - interval.start_us, _DAY_US), 64.0)))


def _us(day: date) -> int:
    return (day - date(1970, 1, 1)).days * _DAY_US


def _month_of(match: re.Match[str]) -> int:
    return _MONTHS.index(match["month"][:3]) + 1


def _one_day(day: date) -> _Days:
    return day, day + timedelta(days=1)


def _whole_month(year: int, month: int) -> _Days:
    first = date(year, month, 1)
    return first, first + timedelta(days=monthrange(year, month)[1])


def _iso_day(match: re.Match[str], _: date) -> _Days:
    return _one_day(date(int(match["year"]), int(match["number"]), int(match["day"])))


def _iso_month(match: re.Match[str], _: date) -> _Days:
    return _whole_month(int(match["year"]), int(match["number"]))


def _named_day(match: re.Match[str], _: date) -> _Days:
    return _one_day(date(int(match["year"]), _month_of(match), int(match["day"])))


def _named_month(match: re.Match[str], _: date) -> _Days:
    return _whole_month(int(match["year"]), _month_of(match))


def _day_of_latest_year(match: re.Match[str], today: date) -> _Days:
    day = date(today.year, _month_of(match), int(match["day"]))
    return _one_day(day if day <= today else day.replace(year=today.year - 1))


def _month_of_latest_year(match: re.Match[str], today: date) -> _Days:
    month = _month_of(match)
    return _whole_month(today.year if month <= today.month else today.year - 1, month)


def _whole_year(match: re.Match[str], _: date) -> _Days:
    year = int(match["year"])
    return date(year, 1, 1), date(year + 1, 1, 1)


def _near_day(match: re.Match[str], today: date) -> _Days:
    return _one_day(today + timedelta(days={"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}[match["near"]]))


def _weekday(match: re.Match[str], today: date) -> _Days:
    back = (today.weekday() - _DAYS.index(match["weekday"][:3])) % 7
    return _one_day(today - timedelta(days=back or 7))


def _turn(match: re.Match[str], today: date) -> _Days:
    """This, last or next week, month or year."""
    step = {"this": 0, "last": -1, "previous": -1, "next": 1}[match["turn"]]
    return _calendar(match["unit"], step, today)


def _calendar(unit: str, step: int, today: date) -> _Days:
    if unit == "day":
        return _one_day(today + timedelta(days=step))
    if unit == "week":
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=step)
        return monday, monday + timedelta(weeks=1)
    if unit == "month":
        months = today.year * 12 + today.month - 1 + step
        return _whole_month(months // 12, months % 12 + 1)
    return date(today.year + step, 1, 1), date(today.year + step + 1, 1, 1)


def _count(match: re.Match[str]) -> int:
    word = match["count"]
    return min(_COUNTS.get(word) or int(word), _AGO_MAX)


def _ago(match: re.Match[str], today: date) -> _Days:
    return _calendar(match["unit"], -_count(match), today)


def _past(match: re.Match[str], today: date) -> _Days:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[match["unit"]] * _count(match)
    return today - timedelta(days=days), today + timedelta(days=1)


_Reader = Callable[[re.Match[str], date], _Days]


def _reader(pattern: str, read: _Reader) -> tuple[re.Pattern[str], _Reader]:
    return re.compile(rf"(?<![\w.-]){pattern}(?![\w-])"), read


_READERS: Final[Sequence[tuple[re.Pattern[str], _Reader]]] = (
    _reader(rf"{_YEAR}[-/](?P<number>[01]?[0-9])[-/](?P<day>[0-3]?[0-9])(?:t[0-9:.]+z?)?", _iso_day),
    _reader(rf"(?P<day>[0-3]?[0-9])\.(?P<number>[01]?[0-9])\.{_YEAR}", _iso_day),
    _reader(rf"{_YEAR}-(?P<number>[01][0-9])", _iso_month),
    _reader(rf"{_DAY}(?: of)? {_MONTH},? {_YEAR}", _named_day),
    _reader(rf"{_MONTH} {_DAY},? {_YEAR}", _named_day),
    _reader(rf"{_MONTH},?(?: of)? {_YEAR}", _named_month),
    _reader(rf"{_DAY}(?: of)? {_MONTH}", _day_of_latest_year),
    _reader(rf"{_MONTH} {_DAY}", _day_of_latest_year),
    _reader(rf"(?:in|during|since|last|of|from|until|early|late|mid) {_MONTH}", _month_of_latest_year),
    _reader(rf"{_COUNT} {_UNIT}s? ago", _ago),
    _reader(rf"(?:the )?(?:past|last) {_COUNT} {_UNIT}s?", _past),
    _reader(rf"(?P<turn>this|last|previous|next) {_UNIT}", _turn),
    _reader(rf"(?:last|on|since|this past) {_WEEKDAY}", _weekday),
    _reader(r"(?P<near>today|tonight|yesterday|tomorrow)", _near_day),
    _reader(_YEAR, _whole_year),
)
"""How to find and read each form of a time, the most telling first; what one has read, no later one sees."""
