"""Which files of a repository are kept, and their bytes as text. Pure."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

from loom.planes.code.languages import grammar_of

FILE_BYTES_MAX: Final = 1024 * 1024
OTHER_BYTES_MAX: Final = 256 * 1024
"""The most of a file in no language that is read: data, configuration, notes."""

LINE_CHARACTERS_MAX: Final = 20_000
"""A file with a longer line was made by a program, for a program."""

PATH_CHARACTERS_MAX: Final = 1_024
HEAD_CHARACTERS: Final = 4_096

SECRET, BINARY, LARGE, MADE = "secret", "binary", "too_large", "generated"
ODD_NAME, UNREADABLE, LINK, IGNORED = "odd_name", "unreadable", "link", "ignored"
"""Why a file is left out."""

SECRET_NAMES: Final = (
    ".env",
    ".env.*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ovpn",
    "*.ppk",
    "*.asc",
    "*.gpg",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    ".vault_pass*",
    "credentials",
    "credentials.*",
    "*credentials.json",
    "secrets.*",
    "secret.*",
    "*.secret",
    "*.secrets",
    "service-account*.json",
    "service_account*.json",
    "client_secret*.json",
    "kubeconfig",
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "*.keytab",
)
SECRET_FOLDERS: Final = frozenset({".ssh", ".aws", ".gnupg", ".azure", ".kube"})
HARMLESS: Final = (".example", ".sample", ".template", ".dist")
"""Endings of files that show what a secrets file looks like."""

HEAVY_FOLDERS: Final = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache"}
)
"""Never a repository's own text, whether they are ignored or not."""

MADE_NAMES: Final = (
    "*.min.js",
    "*.min.css",
    "*.map",
    "*.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "go.sum",
    "*.svg",
)

DOCUMENT_ENDINGS: Final = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc"})
DOCUMENT_NAMES: Final = ("readme*", "changelog*", "contributing*", "architecture*", "design*", "history*", "news*")
DOCUMENT_FOLDERS: Final = frozenset({"doc", "docs", "documentation", "adr", "decisions", "rfcs"})

_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_ODD_BYTES: Final = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b\b\v")
_ODD_SHARE_MAX: Final = 0.02


@dataclass(frozen=True, slots=True)
class Text:
    """A file as text, and the language it is in; empty for none that is read."""

    content: str
    language: str


def left_out(path: str, size: int) -> str:
    """Why a file is not looked at, by its name and size alone; empty when it is."""
    name = PurePosixPath(path).name.casefold()
    folders = path.casefold().split("/")[:-1]
    if _CONTROLS.search(path) or len(path) > PATH_CHARACTERS_MAX:
        return ODD_NAME
    if SECRET_FOLDERS.intersection(folders) or _is_secret(name):
        return SECRET
    if any(fnmatchcase(name, pattern) for pattern in MADE_NAMES):
        return MADE
    return LARGE if size > FILE_BYTES_MAX else ""


def _is_secret(name: str) -> bool:
    if name.endswith(HARMLESS):
        return False
    if any(fnmatchcase(name, pattern) for pattern in SECRET_NAMES):
        # `credentials.py` and the like are code about secrets, not secrets.
        return grammar_of(name) is None or name.endswith(".env")
    return False


def read(path: str, content: bytes) -> Text | str:
    """A file's text, or why it is left out."""
    text = decoded(content)
    return BINARY if text is None else kept(path, text, len(content))


def kept(path: str, text: str, size: int) -> Text | str:
    """A file's text of so many bytes with its language, or why it is left out."""
    grammar = grammar_of(path, text[:HEAD_CHARACTERS])
    if grammar is None and _PRIVATE_KEY.search(text[:HEAD_CHARACTERS]):
        return SECRET
    if grammar is None and size > OTHER_BYTES_MAX:
        return LARGE
    if len(text) > LINE_CHARACTERS_MAX and max(map(len, text.split("\n"))) > LINE_CHARACTERS_MAX:
        return MADE
    return Text(text, "" if grammar is None else grammar.name)


def decoded(content: bytes) -> str | None:
    """Bytes as text: by their mark, as UTF-8, or as Latin-1; None for what is no text."""
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                return None
            return None if "\x00" in text else text
    if b"\x00" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        odd = sum(byte in _ODD_BYTES for byte in content[:HEAD_CHARACTERS])
        if odd > _ODD_SHARE_MAX * min(len(content), HEAD_CHARACTERS):
            return None
        return content.decode("latin-1")


def is_document(path: str) -> bool:
    """Whether a file is written for people: a README, or a page of the documentation."""
    pure = PurePosixPath(path.casefold())
    if pure.suffix not in DOCUMENT_ENDINGS:
        return False
    if any(fnmatchcase(pure.name, pattern) for pattern in DOCUMENT_NAMES):
        return True
    at_the_top = pure.suffix == ".md" and len(pure.parts) == 1
    return at_the_top or bool(DOCUMENT_FOLDERS.intersection(pure.parts[:-1]))
