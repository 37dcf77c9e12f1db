"""Which files are kept, and as what text."""

import pytest

from loom.planes.code import files
from loom.planes.code.files import Text


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "deploy/.env.production",
        "prod.env",
        "keys/server.PEM",
        "id_rsa",
        "id_ed25519.pub",
        ".netrc",
        ".npmrc",
        "home/.aws/config",
        ".ssh/known_hosts",
        "credentials",
        "credentials.json",
        "gcp-credentials.json",
        "secrets.yaml",
        "infra/terraform.tfstate",
        "live.tfvars",
        "service-account-prod.json",
        "store.jks",
    ],
)
def test_secrets_are_left_out(path: str) -> None:
    assert files.left_out(path, 10) == files.SECRET


@pytest.mark.parametrize(
    "path", [".env.example", "settings.env.template", "credentials.py", "secrets.go", "env.py", "key.rs"]
)
def test_code_about_secrets_is_kept(path: str) -> None:
    assert files.left_out(path, 10) == ""


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("package-lock.json", files.MADE),
        ("app.min.js", files.MADE),
        ("uv.lock", files.MADE),
        ("line\nbreak.py", files.ODD_NAME),
        ("half\udc80.py", files.ODD_NAME),
        ("x" * 2_000 + ".py", files.ODD_NAME),
        ("ünïcode 漢字.py", ""),
    ],
)
def test_names_that_are_left_out(path: str, reason: str) -> None:
    assert files.left_out(path, 10) == reason


def test_large_files_are_left_out() -> None:
    assert files.left_out("a.py", files.FILE_BYTES_MAX + 1) == files.LARGE
    assert files.read("a.csv", b"1,2\n" * files.OTHER_BYTES_MAX) == files.LARGE
    assert files.read("a.js", b"a=1;" * 100_000) == files.MADE


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (b"x = 1\n", "x = 1\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        ("x = 'ü'".encode("latin-1"), "x = 'ü'"),
        ("x = 'ü'".encode("utf-16"), "x = 'ü'"),
        (b"a\r\nb\rc\n", "a\r\nb\rc\n"),
        (b"\x00\x01\x02", None),
        (b"\xff\xfe\x00", None),
        (bytes(range(1, 256)) * 20, None),
        (b"\x89PNG\r\n\x1a\n\x00\x00", None),
    ],
)
def test_bytes_as_text(content: bytes, text: str | None) -> None:
    assert files.decoded(content) == text


def test_a_private_key_under_another_name_is_a_secret() -> None:
    key = b"-----BEGIN OPENSSH PRIVATE " + b"KEY-----\nabc\n"
    assert files.read("notes.txt", key) == files.SECRET
    assert isinstance(files.read("test_keys.py", b'KEY = """' + key + b'"""'), Text)


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("README.md", True),
        ("pkg/readme.rst", True),
        ("docs/a/b.md", True),
        ("ARCHITECTURE.md", True),
        ("notes.md", True),
        ("src/data/words.txt", False),
        ("docs/conf.py", False),
        ("requirements.txt", False),
    ],
)
def test_documents(path: str, document: bool) -> None:
    assert files.is_document(path) is document
