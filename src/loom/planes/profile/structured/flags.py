"""What a part of a text says about its own weight: another's fact, unsure, denied, ended, an order.

General cues of English, with the plainest ones of German, Spanish and Chinese. Each pattern is a list of words:
none can backtrack.
"""

import re
from enum import Flag, auto
from typing import Final


class Mark(Flag):
    """What speaks against taking a clause as a fact of the user now."""

    NONE = 0
    OTHER = auto()
    """It is about somebody else."""
    UNSURE = auto()
    """A question, a guess, a plan, a condition."""
    WISH = auto()
    """What somebody wants or aims at."""
    DENIED = auto()
    """It says that something is not so."""
    ENDED = auto()
    """It says that something is over."""
    PAST = auto()
    """It tells of another time."""
    TURN = auto()
    """It replaces what was said before."""


def _words(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{'|'.join(text.split(' | '))})(?!\w)", re.IGNORECASE)


KIN_WORDS: Final = frozenset(
    """mother father boy boys girl girls twin mum mom mam dad parent parents sister brother sibling siblings son sons daughter daughters child
    children kid kids baby twins wife husband spouse partner boyfriend girlfriend fiance fiancee aunt uncle cousin cousins
    nephew niece grandmother grandfather grandma grandpa granddaughter grandson grandchildren grandparents friend friends
    flatmate roommate housemate neighbour neighbours neighbor neighbors colleague colleagues coworker coworkers boss
    manager supervisor intern trainee apprentice assistant secretary teammate teammates team crew staff classmate
    classmates teacher tutor coach trainer instructor accountant lawyer adviser advisor dentist doctor nurse therapist landlord landlady tenant tenants supplier
    suppliers vendor reseller contractor plumber builder predecessor successor rival opponent guest guests visitor
    in-law mother-in-law father-in-law sister-in-law brother-in-law stepson stepdaughter client's dog cat horse puppy
    kitten guitarist bassist drummer singer bandmate bandmates guildmate supervisor postdoc student students professor
    company's rep agent auditor reviewer everyone somebody someone people others
    bruder schwester mutter vater mann frau sohn tochter kind enkel freund freundin chef chefin kollege kollegin
    nachbar nachbarin vorgesetzter vorgesetzte schwesterfirma hermano hermana madre padre marido esposa hijo hija amigo
    amiga jefe jefa vecino vecina compañero compañera novio novia primo prima cuñado cuñada""".split()
)
"""Nouns for somebody who is not the user."""

_KIN: Final = re.compile(r"(?<![\w-])(?:" + "|".join(sorted(map(re.escape, KIN_WORDS), key=len, reverse=True)) + r")(?:['’]s|s['’])?(?![\w-])", re.IGNORECASE)  # noqa: E501, RUF001
_COMPANY: Final = re.compile(r"(?:with|and|including|inclusive|plus|mit|con)(?: \w+){0,3} ?\Z", re.IGNORECASE)
_OBJECT: Final = re.compile(
    r"(?<!\w)(?:him|me|them|us|the (?:user|client|customer|learner|patient|student|traveller|member|player))(?!\w)"
    r"|(?<!\w)her(?= (?:up|down|to|in|on|at|as|when|by|for|over|the|a)\b| [A-Z0-9]|[.,;]|\Z)"
)
_CHINESE_KIN: Final = re.compile("[她他我](?:的)?(?:妈妈|爸爸|母亲|父亲|姐|妹|哥|弟|表|堂|丈夫|妻子|老公|老婆|儿子|女儿|朋友|室友|同事|老板|邻居)|朋友|室友")

_UNSURE: Final = _words(
    "might | maybe | perhaps | possibly | probably | may (?:be|have|join|enter|move|buy|switch|start|try|go|take|become|want|need|even)"
    " | could be | could have | would(?! (?:like|love|prefer|rather)) | wouldn't | should | thinking (?:of|about) | thinks? about | consider(?:s|ed|ing)? | plan(?:s|ning)? (?:to|on)"
    " | hop(?:es|ing) | wishe?s? | dream(?:s|ing)? | some ?day | one day | eventually | if | unless | whether | wonder(?:s|ed|ing)?"
    " | ask(?:s|ed|ing)? | curious | sounds like | looks like | seems | suppose[ds]? | not confirmed | unconfirmed | rumou?rs?"
    " | reportedly | apparently | guess(?:es|ed|ing)? | unsure | not sure | undecided | can't decide | cannot decide | torn between"
    " | depend(?:s|ing)? | either | no idea | soon | some ?time | tempted | interested in | toy(?:s|ing) with | looking (?:at|into|for|to)"
    " | tried | trie[sd] out | trying | for a (?:day|week|month|while) | forgot | can't remember | doesn't remember | doesn't know"
    " | idk | tbd | to be (?:decided|confirmed) | is comparing | still comparing | once (?:the|she|he|they|it) | going to | about to"
    " | says? (?:he|she|they) could | quote[ds]? | pretend(?:s|ed)? | imagin(?:es|ed|ing|e) | in theory | hypothetically | joke[ds]? | joking"
    " | varies | vary | sometimes | demo | interview | waiting list | applied (?:for|to) | estimates?"
    " | überlegt | vielleicht | eventuell | möchte irgendwann | falls | wenn | ob | spielt mit | würde | demnächst | bald"
    " | quizás?s? | tal vez | piensa en | si | algún día | podría | quisiera | a lo mejor"
)
_CHINESE_UNSURE: Final = re.compile("也许|可能|考虑|打算|如果|想不想|以后想|将来|不确定|是否|吗|？")
_WISH: Final = _words(
    "wants? | wanted | would like | would love | 'd like | 'd love | aims?(?: (?:for|to|at))? | aiming | goals? | targets? | hopes | eyeing"
    " | dreams of | ziel | möchte | will | quiere | objetivo | meta"
)
_CHINESE_WISH: Final = re.compile("目标|想要|希望")
_DENIED: Final = _words(
    r"not | no | none | never | nothing | neither | nor | without | cannot | \w+n't | \w+n’t | refuses | annoy\w* | complain\w* | bored | hates? | dislikes?"  # noqa: RUF001
    " | avoids? | declined? | opted out | unsubscribed | disabled | switched off | turned off | stop | lacks? | isn't"
    " | kein(?:e|en|er|em)? | nicht | nie | ohne | nunca | ningún | ninguna | sin | no tiene"
)
_CHINESE_DENIED: Final = re.compile("不|没有|没|无|未")
_ENDED: Final = _words(
    "no longer | not any ?more | not anymore | any ?more | used to | stopped | quit | quits | left(?= (?:[A-Z]|the|his|her|their|in|for|at|last|after)) | sold | cancell?ed | dropped | gave up"
    " | given up | uninstalled | removed | former | formerly | previous | previously | ex | retired | expired | closed | withdrew"
    " | withdrawn | lapsed | unsubscribed | resigned | switched off | turned off | deleted | revoked | called off | terminated | discontinued"
    " | went off | moved away | is off | was off | replaced | lost | ended | got rid of"
    " | nicht mehr | früher | ehemalige?r? | gekündigt | abgebrochen | ya no | dejó de | antes | canceló"
)
_CHINESE_ENDED: Final = re.compile("不再|已经不|以前|退订|取消|之前")
_PAST: Final = _words(
    "(?:all through )?last (?:year|month|week|summer|winter|spring|autumn|decade|season) | years ago | months ago | back then | in the past"
    " | was | were | had | used | once(?! (?:a|per|every|in|the)) | originally | initially | (?<!years )(?<!year )old | at the time"
    " | as a (?:child|kid|student|teenager)"
    " | war | waren | era | fue | solía"
)
_TURN: Final = _words(
    "actually | update | updated | correction | corrected | now | instead | since then | these days | has changed | changed | moved | switched"
    " | upgraded | downgraded | raised | lowered | new | as of | from now on | went | jetzt | inzwischen | ahora | nur noch | pushed | rescheduled"
    " | postponed | brought forward | renewed | again"
)
_CHINESE_TURN: Final = re.compile("现在|改|后来|升")
_ORDER: Final = re.compile(
    r"(?:ignore|disregard|forget|override|bypass)\s+(?:all\s+|any\s+|the\s+|your\s+|these\s+|those\s+)*"
    r"(?:previous|prior|earlier|above|other|schema|rules?|instructions?|guard|guidelines?|policy|everything)"
    r"|(?:ignorier\w*|ignora|ignore[nz]?)\s+(?:alle|todas?|die|las|los|el|la)\b|忽略|无视"
    r"|\bsystem\s+(?:note|prompt|message|override|instruction)|\bdo not (?:tell|inform|mention this to|alert)\b|\bdon't tell the\b"
    r"|\bupdate (?:the |your |all )?(?:records?|profile|fields?|database|entry)\b|\b(?:report|return|respond with|reply with|answer with|output)\s+(?:success|only|true|false|ok)\b"
    r"|\brecord (?:that|this|in the)\b|\bas an? (?:ai|assistant|language model)\b|\byou (?:must|are now|have to|should now)\b|\bprevious rules\b"
    r"|(?:^|[.;:!,\n]\s*|\band\s+|\balso\s+|\bthen\s+|\bplease\s+|\bnow\s+)(?:set|mark|overwrite|assign|register|store|save|change|write|fill|populate|force|treat|put|switch|classify|flag)\s+"
    r"(?!up\b|aside\b|out\b|off\b|in\b|back\b)[^.;:!\n]{0,80}?(?:\bto\b|\bas\b|\bat\b|=|\btrue\b|\bfalse\b|\binto\b)"
    r"|\bset\w*\s+\w+_\w+|(?:setze|stelle)\s+\S+\s+auf\b|(?:establece|cambia|pon)\s+\S+\s+(?:a|en)\b|(?:设置|设为|改为|把)\S{0,20}(?:设为|设置为|改成)",
    re.IGNORECASE,
)
_VAGUE_OR: Final = re.compile(r"(?<!\w)(?:or|oder|between|zwischen|entre)(?!\w)|或者|或", re.IGNORECASE)
_USER_POSSESSIVE: Final = re.compile(
    r"(?<!\w)(?!(?:user|client|customer|learner|patient|member|player|traveller|it|he|she|that|what|there|here|who|let)['’]s)"  # noqa: RUF001
    r"[A-Z]\w+['’]s (?=[a-z])"  # noqa: RUF001
)


def is_order(text: str) -> bool:
    """Whether `text` tells a reader to change records: such text is never evidence."""
    return _ORDER.search(text) is not None


def is_vague(text: str) -> bool:
    """Whether `text` leaves a choice open."""
    return _VAGUE_OR.search(text) is not None


def others_in(text: str) -> frozenset[str]:
    """The people in `text` that are not the user and that it is about, lower case."""
    found: set[str] = set()
    for match in _KIN.finditer(text):
        before = text[: match.start()]
        if _COMPANY.search(before[-40:]):
            continue
        if _OBJECT.search(text[match.end() :]) and before.count(" ") <= 1:
            continue
        found.add(re.sub(r"['’]s?\Z", "", match[0].casefold()))  # noqa: RUF001
    if _CHINESE_KIN.search(text):
        found.add("other")
    if possessive := _USER_POSSESSIVE.search(text):
        found.add(possessive[0].strip().casefold())
    return frozenset(found)


_PAIRS: Final = (
    (Mark.UNSURE, _UNSURE, _CHINESE_UNSURE),
    (Mark.WISH, _WISH, _CHINESE_WISH),
    (Mark.DENIED, _DENIED, _CHINESE_DENIED),
    (Mark.ENDED, _ENDED, _CHINESE_ENDED),
    (Mark.PAST, _PAST, None),
    (Mark.TURN, _TURN, _CHINESE_TURN),
)


def marks(text: str) -> Mark:
    """Every mark that `text` bears; `OTHER` is told by `others_in`."""
    found = Mark.NONE
    for mark, pattern, chinese in _PAIRS:
        if pattern.search(text) or (chinese is not None and chinese.search(text)):
            found |= mark
    if "?" in text:
        found |= Mark.UNSURE
    return found
