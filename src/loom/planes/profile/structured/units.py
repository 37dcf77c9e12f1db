"""Numbers in text with their units, and what a property asks to be measured in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loom.planes.profile.structured import cues
from loom.planes.profile.structured.codes import NUMBERS

_SPELLINGS: Final = {
    "kg": "kg kilo kilos kilogram kilograms kilogramm kilogramos 公斤 千克",
    "g": "gram grams",
    "lb": "lb lbs pound pounds",
    "cm": "cm centimetre centimetres centimeter centimeters zentimeter centímetros 厘米",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "m": "m metre metres meter meters metros 米",
    "km": "km kilometre kilometres kilometer kilometers kilómetros 公里",
    "mi": "mi mile miles",
    "ft": "ft feet foot",
    "in": "inch inches",
    "m2": "m2 sqm m²",
    "sqft": "sqft",
    "eur": "eur euro euros € 欧元",
    "usd": "usd dollar dollars $ 美元",
    "gbp": "gbp £ quid",
    "other_money": "chf cad aud yen jpy yuan rmb krona kronor sek nok dkk zloty rupees francs 台币 人民币",
    "s": "second seconds",
    "min": "min mins minute minutes minuten minutos 分钟",
    "h": "h hr hrs hour hours stunde stunden hora horas 小时 个小时",
    "day": "day days tag tage día días 天",
    "week": "week weeks woche wochen semana semanas 周",
    "month": "month months monat monate mes meses 月",
    "year": "year years jahr jahre año años 年",
    "bpm": "bpm",
    "pct": "percent pct %",
    "mg": "mg milligram milligrams",
    "mcg": "mcg microgram micrograms",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "l": "l litre litres liter liters",
    "gb": "gb",
    "tb": "tb",
    "mb": "mb",
    "ms": "ms",
    "hz": "hz",
    "c": "°c celsius degrees",
    "w": "w watt watts",
    "kwh": "kwh",
}
_UNIT: Final = {word: unit for unit, spelled in _SPELLINGS.items() for word in spelled.split()}
_SAME_KIND: Final = {
    "kg": ("mass", 1.0), "g": ("mass", 0.001), "lb": ("mass", 0.45359237),
    "cm": ("length", 1.0), "mm": ("length", 0.1), "m": ("length", 100.0), "ft": ("length", 30.48),
    "in": ("length", 2.54),
}  # fmt: skip
_IMPERIAL: Final = {"lb": "pound", "ft": "feet", "in": "inch"}
_METRIC: Final = frozenset(("kg", "g", "cm", "mm", "m"))
_TIMES: Final = frozenset(("day", "week", "month", "year"))
_FROM_NAME: Final = cues.words("unit_names")
_SAYS_UNIT: Final = re.compile(
    r"\b(?:in|how many) ((?:us |square )?[a-z]+)\b|\A(?:number of |how many )?(minutes|hours|days|weeks|months|years)\b"
)
_SQUARE: Final = re.compile(r"square (?:met(?:re|er)s?|m)\b", re.IGNORECASE)
_SQUARE_FEET: Final = re.compile(r"square (?:feet|foot|ft)\b", re.IGNORECASE)

_WORDS: Final = "|".join(sorted(map(re.escape, NUMBERS), key=len, reverse=True))
NUMBER: Final = re.compile(
    rf"(?P<money>[$€£] ?|(?<!\w)(?:EUR|USD|GBP|US\$) ?)?"
    rf"(?:(?<![\w.,:/@#+-])(?P<digits>-?\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|-?\d+(?:[.,]\d+)?)(?:(?P<thousand>k)(?!\w))?(?:st\b|nd\b|rd\b|th\b)?|(?<![\w-])(?P<word>{_WORDS})(?![\w-]))"
    r"(?P<half> and a half| ½|½)?(?P<unit> ?[%€$]| ?-?(?:US )?[A-Za-zÀ-ÿ°²]+\.?| ?[\u4e00-\u9fff]{1,3})?(?![\d])",
    re.IGNORECASE,
)
_FEET: Final = re.compile(
    rf"(?<!\w)(?P<feet>\d|{_WORDS}) ?(?:['\u2019\u2032]|-?(?:feet|foot|ft)\b) ?(?:(?P<inches>\d{{1,2}}|{_WORDS}) ?(?:\"|''|\u201d|\u2033|inches|inch|in)?)?(?!\w)",  # noqa: E501
    re.IGNORECASE,
)
FOUND_MAX: Final = 16
DIGITS_MAX: Final = 18


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a text.

    Attributes:
        value: the number.
        unit: the unit beside it; empty without one.
        noun: the word after it when that is no unit, lower case.
        start: where it begins.
        end: where it ends, without what follows it.
    """

    value: float
    unit: str
    noun: str
    start: int
    end: int


def unit_of(word: str) -> str:
    """The unit that a word names; empty for none."""
    return _UNIT.get(word.strip(" -.").casefold().removeprefix("us "), "")


def asked(name: Sequence[str], description: str) -> frozenset[str]:
    """The units that a property's name and description ask for."""
    found = {_UNIT[word] for word in name if word in _FROM_NAME}
    if not found:
        lowered = _SQUARE.sub("sqm", description.casefold())
        for match in _SAYS_UNIT.finditer(lowered):
            unit = unit_of(match[1] or match[2])
            if unit and len(match[1] or match[2]) > 1 and (match[2] or unit not in _TIMES):
                found.add(unit)
        if "beats per minute" in lowered or "heart rate" in lowered:
            found.add("bpm")
    return frozenset(found)


def amounts(text: str) -> list[Amount]:
    """The numbers of `text`, at most 16; of feet with inches, one in inches."""
    found: list[Amount] = []
    text = _SQUARE_FEET.sub(lambda match: "sqft".ljust(len(match[0])), text)
    text = _SQUARE.sub(lambda match: "sqm".ljust(len(match[0])), text)
    taken: list[tuple[int, int]] = []
    for match in _FEET.finditer(text):
        if len(found) >= FOUND_MAX:
            break
        feet, inches = _plain(match["feet"]), _plain(match["inches"] or "0")
        if match["inches"] or "'" not in match[0]:
            found.append(Amount(feet * 12 + inches, "in", "", match.start(), match.end()))
            taken.append(match.span())
    for match in NUMBER.finditer(text):
        if len(found) >= FOUND_MAX:
            break
        start = match.start("digits") if match["digits"] else match.start("word")
        if any(low <= start < high for low, high in taken):
            continue
        value = _plain(match["digits"] or match["word"]) * (1000 if match["thousand"] else 1)
        after = (match["unit"] or "").strip(" -.")
        unit = unit_of(match["money"] or "") or unit_of(after) or unit_of(match["money"] or "")
        end = (
            match.end("half")
            if match["half"]
            else match.end("thousand" if match["thousand"] else "digits" if match["digits"] else "word")
        )
        found.append(
            Amount(value + (0.5 if match["half"] else 0.0), unit, "" if unit else after.casefold(), start, end)
        )
    return found


def _plain(text: str) -> float:
    if text.casefold() in NUMBERS:
        return float(NUMBERS[text.casefold()])
    if "," in text and not re.fullmatch(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        text = text.replace(",", ".")
    text = text.replace(",", "")
    return float(text) if len(text) <= DIGITS_MAX else float("nan")


def converted(amount: Amount, wanted: frozenset[str], description: str) -> float | None:
    """The amount in the unit that is asked for; None when it is of another one that is not converted."""
    if not amount.unit or amount.unit in wanted or not wanted:
        return amount.value
    for unit in sorted(wanted):
        here, there = _SAME_KIND.get(amount.unit), _SAME_KIND.get(unit)
        if here is None or there is None or here[0] != there[0]:
            continue
        told = "convert" in description.casefold() and _IMPERIAL.get(amount.unit, "?") in description.casefold()
        if told or (amount.unit in _METRIC and unit in _METRIC):
            places = 1 if "one decimal" in description else 0 if "whole" in description else 4
            return round(amount.value * here[1] / there[1], places)
    return None
