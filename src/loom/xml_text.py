"""Text in XML: stored text is data, which can neither open an element nor close the one it stands in."""

import re
from typing import Final

REPLACEMENT: Final = "\ufffd"
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""

_IN_TEXT: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_TEXT: Final = str.maketrans(_IN_TEXT)
_ATTRIBUTE: Final = str.maketrans({**_IN_TEXT, '"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


def content(text: str) -> str:
    """`text` between two tags; what XML cannot hold is replaced by U+FFFD."""
    return _NOT_XML.sub(REPLACEMENT, text).translate(_TEXT)


def attribute(text: str) -> str:
    """`text` between double quotes, which reads back with its line ends and tabs."""
    return _NOT_XML.sub(REPLACEMENT, text).translate(_ATTRIBUTE)
