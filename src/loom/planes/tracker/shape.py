"""Whether a question is about a defect. Pure."""

import re
from typing import Final

from loom.planes.tracker import traits

_WORDS: Final = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|crash(?:e[sd]|ing)?|errors?|errored|bugs?|buggy|defects?|regressions?|broken|breaks"
    r"|hangs?|hung|freezes?|frozen|stuck|deadlock(?:s|ed)?|panic(?:s|ked)?|segfaults?|core dump(?:ed)?|aborts|aborted"
    r"|exceptions?|throws|threw|tracebacks?|stack ?traces?|leaks?|leaking|corrupt(?:s|ed|ion)?|time[sd]? out|timeouts?"
    r"|misbehaves?|malfunctions?|unexpected(?:ly)?|wrong (?:result|output|value|answer)s?|not work(?:ing)?"
    r"|(?:does|do|did|is)(?:n['\u2019]?t| not) work(?:ing)?|no longer works?|stopped working"
    r"|can(?:no|['\u2019])t reproduce"
    r"|exit(?:ed|s)?(?: with)? (?:code|status)|status code [45]\d\d|http [45]\d\d"
    r"|fehler|absturz|abgest\u00fcrzt|st\u00fcrzt ab|schl\u00e4gt fehl|fehlgeschlagen"
    r"|erreur|plante|\u00e9choue|fallo|falla|bloquea"
    r"|\u043e\u0448\u0438\u0431\u043a\u0430|\u043f\u0430\u0434\u0430\u0435\u0442)\b",
    re.IGNORECASE,
)
_SPACELESS_WORDS: Final = re.compile(
    "\u5d29\u6e83|\u62a5\u9519|\u9519\u8bef|\u5f02\u5e38|\u5931\u8d25|\u5361\u6b7b|\u30a8\u30e9\u30fc|\u4f8b\u5916"
    "|\u30af\u30e9\u30c3\u30b7\u30e5|\u5931\u6557|\u30d0\u30b0|\uc624\ub958|\ucda9\ub3cc"
)
_DIGITS: Final = re.compile(r"\d")


def is_defect(question: str) -> bool:
    """Whether the question shows a failure, names one, names an issue, or says that something does not work."""
    if _WORDS.search(question) or _SPACELESS_WORDS.search(question):
        return True
    found = traits.parsed(question)
    return found.any_failure or any(_DIGITS.search(name) for name in found.mentions)
