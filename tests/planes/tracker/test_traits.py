"""What a report names besides its words."""

import time

import pytest

from loom.planes.tracker import traits


def test_exceptions_signals_and_error_numbers() -> None:
    text = "java.io.FileNotFoundException then OSError, ENOENT and SIGSEGV; an NPE. Error: EXPERIMENTAL Exception"
    assert traits.parsed(text).exceptions == (
        "filenotfoundexception",
        "oserror",
        "enoent",
        "sigsegv",
        "nullpointerexception",
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("terminate called after throwing an instance of 'std::out_of_range'", "out_of_range"),
        ("Segmentation fault (core dumped)", "sigsegv"),
        ("panic: assignment to entry in nil map", "panic"),
        ("thread 'main' panicked at src/main.rs:2:5", "panic"),
        ("runtime error: invalid memory address or nil pointer dereference", "nilpointerdereference"),
        ("the process ran out of memory", "outofmemoryerror"),
        ("System.NullReferenceException: Object reference not set", "nullreferenceexception"),
    ],
)
def test_failures_by_many_names(text: str, name: str) -> None:
    assert name in traits.parsed(text).exceptions


def test_paths_keep_their_last_two_parts_and_need_to_look_like_paths() -> None:
    text = "src/hdfs/DFSClient.java, C:\\Users\\x\\conf.yaml, ~/app/core/a.py, ./run.sh, setup.py; and/or 2020/05/06"
    assert traits.parsed(text).paths == ("hdfs/dfsclient.java", "x/conf.yaml", "core/a.py", "run.sh", "setup.py")


def test_an_address_is_no_path() -> None:
    assert traits.parsed("see https://example.org/a/b/c.py").paths == ()


def test_symbols_are_names_from_code() -> None:
    text = "`max_retries` of RetryPolicy, getFileStatus, close() and `a.b.Connect` but not Plain words"
    assert traits.parsed(text).symbols == ("max_retries", "connect", "retrypolicy", "getfilestatus", "close")


def test_the_name_of_an_exception_is_no_symbol() -> None:
    found = traits.parsed("FileNotFoundException in openFile")
    assert (found.exceptions, found.symbols) == (("filenotfoundexception",), ("openfile",))


def test_mentions_of_other_issues() -> None:
    text = (
        "#123, GH-45, HADOOP-17796, acme/app#8, https://github.com/acme/app/issues/77, CVE-2020-1234, bug 99, issue #5"
    )
    assert set(traits.parsed(text).mentions) == {"123", "45", "hadoop-17796", "8", "77", "cve-2020-1234", "99", "5"}


@pytest.mark.parametrize(
    "text", ["UTF-8", "SHA-256", "&#39;", "a#b", "C#7 is a language", "version 12", "#fff", "2020-01-02"]
)
def test_what_is_no_mention(text: str) -> None:
    assert traits.parsed(text).mentions == ()


def test_what_is_given_is_brought_to_the_same_form() -> None:
    assert traits.paths_of(["/srv/x/src/a.py", "src/a.py", "  ", "b.py"]) == ("src/a.py", "b.py")
    assert traits.symbols_of(["a.b.Connect", "connect", "close()", "::"]) == ("connect", "close")
    assert traits.mentions_of(["12", "#12", "ABC-7", "https://x.org/issues/9", " "]) == ("12", "abc-7", "9")
    assert traits.names_of(7, "https://issues.apache.org/browse/HADOOP-7") == {"7", "hadoop-7"}


def test_a_stack_is_no_prose() -> None:
    found = traits.parsed("#0  0x7f in Foo::bar (x=1) at /src/foo.cpp:12\nsee #4")
    assert (found.mentions, found.paths, len(found.frames)) == (("4",), (), 1)


@pytest.mark.parametrize(
    "text",
    [
        "a/" * 50_000,
        "a_" * 50_000,
        "aB" * 50_000,
        "A." * 50_000,
        "a." * 50_000 + "!",
        "AB1-" * 25_000,
        "`" + "x" * 100_000,
        "x" * 100_000 + "://",
        "ab-" * 33_000,
        "#1" * 50_000,
        "/" * 100_000,
        "a\\" * 50_000,
        "Aa" * 50_000 + "_",
        "issue " * 16_000,
        "\u5d29\u6e83" * 50_000,
    ],
)
def test_hostile_texts_cost_little(text: str) -> None:
    start = time.process_time()
    found = traits.parsed(text)
    assert time.process_time() - start < 2.0
    for names in (found.frames, found.exceptions, found.paths, found.symbols, found.mentions):
        assert len(names) <= traits.EACH_MAX
