"""Which questions are about a defect."""

import pytest

from loom.planes.tracker.shape import is_defect


@pytest.mark.parametrize(
    "question",
    [
        "why does the importer crash",
        "the login fails after an update",
        "NullPointerException",
        "KeyError: 'user'",
        "what about #12?",
        "HADOOP-17796",
        "is issue 44 fixed?",
        "it doesn't work any more",
        "the build is broken",
        "HTTP 500 from /v1/search",
        "exit code 137",
        "\tat org.acme.Client.close(Client.java:127)",
        'File "/srv/app/main.py", line 12, in run',
        "main.(*Server).Serve(0xc0)\n\t/home/u/server.go:123 +0x1d",
        "0: app::main\n          at ./src/main.rs:2:5",
        "    at Client.send (/srv/a/c.mjs:1:2)",
        "#0 0x4f3 in foo::baz(int) /src/foo.cc:10:3",
        "ECONNREFUSED",
        "SIGSEGV in worker",
        "Die Anmeldung st\u00fcrzt ab",
        "\u767b\u5f55\u5d29\u6e83\u4e86",
        "\u30ed\u30b0\u30a4\u30f3\u3067\u30a8\u30e9\u30fc",
        "ERROR",
    ],
)
def test_about_a_defect(question: str) -> None:
    assert is_defect(question)


@pytest.mark.parametrize(
    "question",
    [
        "how do I log in",
        "what is in src/app/main.py",
        "who is on the team",
        "which database does the project use?",
        "UTF-8 support",
        "release notes of 2.1.0",
        "what did we decide in January 2026",
        "terrorist",
        "the debug flag",
        "\u6211\u4eec\u7528\u4ec0\u4e48\u6570\u636e\u5e93",
        "",
    ],
)
def test_not_about_a_defect(question: str) -> None:
    assert not is_defect(question)
