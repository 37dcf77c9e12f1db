"""Stack frames of every language that is read, and what is no frame."""

import time

import pytest

from loom.planes.tracker.traces import FRAMES_MAX, Frame, frame_of, parsed, written

PYTHON = """Traceback (most recent call last):
  File "/srv/app/main.py", line 12, in <module>
    run()
  File "C:\\x\\lib\\net.py", line 3, in Client.send
    raise ValueError("x")
ValueError: x
"""
JAVA = """java.lang.NullPointerException: null
\tat org.apache.hadoop.hdfs.DFSClient.close(DFSClient.java:123)
\tat java.base/java.lang.Thread.run(Thread.java:829)
\tat org.x.Foo$Bar.lambda$main$0(Foo.java)
\tat org.x.Foo.<init>(Foo.java:3) ~[x.jar:1.2]
\tat sun.reflect.NativeMethodAccessorImpl.invoke0(Native Method)
\t... 12 more
"""
SCRIPT = """TypeError: undefined is not a function
    at Object.foo (/srv/a/b.js:10:3)
    at async Client.send [as request] (file:///srv/a/c.mjs:1:2)
    at new Server (webpack:///./src/server.ts?a1:33:2)
    at /srv/a/d.js:4:5
foo@http://localhost/x.js:3:4
"""
GO = """panic: runtime error: invalid memory address or nil pointer dereference
goroutine 1 [running]:
main.(*Server).Serve(0xc000010000, {0x1, 0x2})
\t/home/u/server.go:123 +0x1d
github.com/acme/app/pkg.Load[...](...)
\t/home/u/pkg/load.go:3
main.main.func1()
\t/tmp/main.go:9 +0x20
created by net/http.(*Server).Serve in goroutine 7
\t/usr/go/src/net/http/server.go:3086 +0x5cb
"""
RUST = """thread 'main' panicked at src/main.rs:2:5:
stack backtrace:
   0: rust_begin_unwind
             at /rustc/abc/library/std/src/panicking.rs:645:5
   1: core::panicking::panic_fmt::h0123456789abcdef
             at /rustc/abc/library/core/src/panicking.rs:72:14
   2: app::main::{{closure}}
             at ./src/main.rs:2:5
"""
NATIVE = """#0  0x00007f in ns::Foo<int>::bar (this=0x0, f=(x)) at foo.cpp:12
#1  main () at /src/main.cpp:3
    #2 0x4f3 in foo::baz(int, char const*) /src/foo.cc:10:3
"""
SHARP = "   at Ns.Klass.Method(String a, Int32 b) in C:\\p\\File.cs:line 12\n"
RUBY = "app/models/user.rb:3:in `save'\n\tfrom app/main.rb:9:in 'User#save!'\n"
PHP = "#0 /var/www/a.php(12): Foo\\Bar->baz('x')\n"

FRAMES = {
    PYTHON: ["<module> (main.py)", "client.send (net.py)"],
    JAVA: [
        "dfsclient.close (dfsclient.java)",
        "thread.run (thread.java)",
        "bar.main (foo.java)",
        "foo.init (foo.java)",
        "nativemethodaccessorimpl.invoke0",
    ],
    SCRIPT: ["foo (b.js)", "client.send (c.mjs)", "server (server.ts)", "<anonymous> (d.js)", "foo (x.js)"],
    GO: ["server.serve (server.go)", "pkg.load (load.go)", "main.main (main.go)"],
    RUST: ["rust_begin_unwind (panicking.rs)", "panicking.panic_fmt (panicking.rs)", "app.main (main.rs)"],
    NATIVE: ["foo.bar (foo.cpp)", "main (main.cpp)", "foo.baz (foo.cc)"],
    SHARP: ["klass.method (file.cs)"],
    RUBY: ["save (user.rb)", "user.save! (main.rb)"],
    PHP: ["bar.baz (a.php)"],
}


@pytest.mark.parametrize(
    ("text", "frames"), FRAMES.items(), ids=["py", "java", "js", "go", "rust", "c++", "c#", "rb", "php"]
)
def test_a_trace_gives_its_frames(text: str, frames: list[str]) -> None:
    assert [str(frame) for frame in parsed(text).frames] == frames
    windows = text.replace("\n", "\r\n")
    assert [str(frame) for frame in parsed(windows).frames] == frames


def test_frames_of_several_traces_stand_in_order_and_once() -> None:
    frames = parsed(f"first\n{JAVA}\nthen\n{PYTHON}\nand again\n{JAVA}").frames
    assert [str(frame) for frame in frames] == FRAMES[JAVA] + FRAMES[PYTHON]


def test_what_is_left_is_the_text_without_its_frames() -> None:
    assert parsed(JAVA).rest == "java.lang.NullPointerException: null\n\t... 12 more\n"


@pytest.mark.parametrize(
    "text",
    [
        "#12 is the same as this one at work",
        "# A heading at 10:00",
        "at least (one thing) broke",
        "see at home (or not)",
        "1: first\n   at the door",
        "mail me@example.org: now",
        "a.b(c)",
        "",
        "\n\n",
    ],
)
def test_prose_has_no_frames(text: str) -> None:
    assert parsed(text).frames == ()
    assert parsed(text).rest == text


def test_frames_are_compared_by_function_and_file_and_not_by_line() -> None:
    here, there = parsed("\tat a.b.C.d(C.java:1)"), parsed("\tat x.b.C.d(C.java:999)")
    assert here.frames == there.frames
    assert frame_of("C.d", "C.java").same(frame_of("C.d", ""))
    assert not frame_of("C.d", "C.java").same(frame_of("C.d", "D.java"))
    assert not frame_of("C.d", "C.java").same(frame_of("C.e", "C.java"))


@pytest.mark.parametrize(
    ("given", "frame"),
    [
        ("DFSClient.close", Frame("dfsclient.close", "")),
        ("DFSClient.close (DFSClient.java:3)", Frame("dfsclient.close", "dfsclient.java")),
        ("close(src/client.py)", Frame("close", "client.py")),
        ("\tat a.b.C.d(C.java:1)", Frame("c.d", "c.java")),
        ("pkg::f", Frame("pkg.f", "")),
        ("größe.ändern (größe.py)", Frame("größe.ändern", "größe.py")),
    ],
)
def test_frames_can_be_written_in_many_ways(given: str, frame: Frame) -> None:
    assert written(given) == frame


@pytest.mark.parametrize("given", ["", "   ", "()", "...", "<>"])
def test_a_frame_that_names_nothing_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="function"):
        written(given)


def test_a_deep_stack_is_cut_to_the_frames_near_the_failure() -> None:
    frames = parsed("\n".join(f"\tat a.B.m{number}x(B.java:1)" for number in range(500))).frames
    assert len(frames) == FRAMES_MAX
    assert frames[0].function == "b.m0x"


@pytest.mark.parametrize(
    "line",
    [
        "at " + "a." * 500,
        "#1 0x1 in " + "(a" * 300,
        "a" * 1000 + "(",
        "#1 at " + " (" * 400,
        "x." * 300 + "[{" * 100,
        "at " + "a/" * 480 + "(",
        "#1 0x1 in " + "a " * 450,
        "at " + "x" * 400 + " (" + "y:1" * 150,
        "  1: " + "< " * 400,
    ],
)
def test_hostile_lines_cost_little(line: str) -> None:
    start = time.process_time()
    parsed("\n".join([line] * 200))
    assert time.process_time() - start < 2.0
