"""Countries and languages by their English names, with their ISO codes; and number words."""

from collections.abc import Mapping
from typing import Final

_COUNTRIES: Final = """
AE:United Arab Emirates,Emirati|AR:Argentina,Argentine,Argentinian|AT:Austria,Austrian|AU:Australia,Australian
BE:Belgium,Belgian|BG:Bulgaria,Bulgarian|BR:Brazil,Brazilian|CA:Canada,Canadian|CH:Switzerland,Swiss|CL:Chile,Chilean
CN:China,Chinese|CO:Colombia,Colombian|CR:Costa Rica,Costa Rican|CU:Cuba,Cuban|CY:Cyprus,Cypriot
CZ:Czech Republic,Czechia,Czech|DE:Germany,German,Deutschland|DK:Denmark,Danish|EE:Estonia,Estonian|EG:Egypt,Egyptian
ES:Spain,Spanish,España|FI:Finland,Finnish|FR:France,French|GB:United Kingdom,Great Britain,Britain,British,UK,England
GR:Greece,Greek|HK:Hong Kong|HR:Croatia,Croatian|HU:Hungary,Hungarian|ID:Indonesia,Indonesian|IE:Ireland,Irish
IL:Israel,Israeli|IN:India,Indian|IR:Iran,Iranian|IS:Iceland,Icelandic|IT:Italy,Italian|JP:Japan,Japanese
KE:Kenya,Kenyan|KR:South Korea,Korea,Korean|LT:Lithuania,Lithuanian|LU:Luxembourg,Luxembourgish|LV:Latvia,Latvian
MA:Morocco,Moroccan|MT:Malta,Maltese|MX:Mexico,Mexican|MY:Malaysia,Malaysian|NG:Nigeria,Nigerian
NL:Netherlands,Dutch,Holland|NO:Norway,Norwegian|NZ:New Zealand|PE:Peru,Peruvian|PH:Philippines,Filipino
PK:Pakistan,Pakistani|PL:Poland,Polish|PT:Portugal,Portuguese|RO:Romania,Romanian|RS:Serbia,Serbian
RU:Russia,Russian|SA:Saudi Arabia,Saudi|SE:Sweden,Swedish|SG:Singapore,Singaporean|SI:Slovenia,Slovenian
SK:Slovakia,Slovak|TH:Thailand,Thai|TN:Tunisia,Tunisian|TR:Turkey,Turkish,Türkiye|TW:Taiwan,Taiwanese
UA:Ukraine,Ukrainian|US:United States,USA,American,US|UY:Uruguay,Uruguayan|VE:Venezuela,Venezuelan
VN:Vietnam,Vietnamese|ZA:South Africa,South African
"""

_LANGUAGES: Final = """
ar:Arabic,Arabisch,árabe|bg:Bulgarian|bn:Bengali|ca:Catalan,catalán|cs:Czech,Tschechisch|da:Danish,Dänisch
de:German,Deutsch,alemán|el:Greek,Griechisch,griego|en:English,Englisch,inglés|es:Spanish,Spanisch,español,Castilian
et:Estonian|eu:Basque|fa:Persian,Farsi|fi:Finnish,Finnisch|fr:French,Französisch,francés|ga:Irish|gl:Galician
he:Hebrew|hi:Hindi|hr:Croatian|hu:Hungarian,Ungarisch|id:Indonesian|is:Icelandic|it:Italian,Italienisch,italiano
ja:Japanese,Japanisch,japonés|ko:Korean,Koreanisch,coreano|la:Latin|lt:Lithuanian|lv:Latvian|ms:Malay|nb:Bokmål
nl:Dutch,Niederländisch,neerlandés|no:Norwegian,Norwegisch,noruego|pl:Polish,Polnisch,polaco
pt:Portuguese,Portugiesisch,portugués|ro:Romanian|ru:Russian,Russisch,ruso|sk:Slovak|sl:Slovenian|sr:Serbian
sv:Swedish,Schwedisch,sueco|sw:Swahili|ta:Tamil|th:Thai|tl:Tagalog|tr:Turkish,Türkisch,turco|uk:Ukrainian
ur:Urdu|vi:Vietnamese|zh:Chinese,Mandarin,Chinesisch,chino
"""


def _table(text: str) -> Mapping[str, str]:
    pairs = (entry.split(":") for line in text.strip().splitlines() for entry in line.split("|"))
    return {name: code for code, names in pairs for name in names.split(",")}


COUNTRIES: Final = _table(_COUNTRIES)
"""From a country's name, or the adjective of it, to its ISO 3166-1 alpha-2 code."""

LANGUAGES: Final = _table(_LANGUAGES)
"""From a language's name to its ISO 639-1 code."""

_ONES: Final = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_MORE: Final = "seventeen eighteen nineteen"
_TENS: Final = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_GERMAN: Final = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
_SPANISH: Final = "cero un dos tres cuatro cinco seis siete ocho nueve diez once doce"


def _numbers() -> Mapping[str, int]:
    ones = {word: place for place, word in enumerate(f"{_ONES} {_MORE}".split())}
    made = {**ones, **_TENS, "eine": 1, "einen": 1, "zwanzig": 20, "dreißig": 30, "vierzig": 40, "una": 1}
    made.update({f"{ten}-{one}": value + ones[one] for ten, value in _TENS.items() for one in _ONES.split()[1:10]})
    for words in (_GERMAN, _SPANISH):
        made.update({word: place for place, word in enumerate(words.split()) if word not in made})
    return made


NUMBERS: Final = _numbers()
"""English, German and Spanish number words; English ones to ninety-nine."""
