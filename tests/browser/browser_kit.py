"""What a browser test sees of a page, and what it stores before."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, expect

from running import Server

SHOTS = Path(__file__).resolve().parents[2] / ".browser" / "screenshots"
PROBE = "<script>alert('loom')</script>\u202eevil\"'><img src=x onerror=alert(1)>{{7*7}}"
HOSTILE = "hostile"


@dataclass
class Watched:
    """A page, and everything that went wrong on it.

    Attributes:
        page: the page.
        origin: the only server it may ask.
        trouble: errors on the console, requests that left the origin, dialogs, failed scripts.
        expected: parts of console errors that a test brings about itself, such as a status of 409.
    """

    page: Page
    origin: str
    trouble: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.trouble.append(f"script: {error}"))
        self.page.on("request", self._asked)
        self.page.on("dialog", self._dialog)

    def go(self, path: str) -> None:
        """Open a page, and wait until all of it has come, the parts that it asks for later included."""
        self.page.goto(self.origin + path)
        expect(self.page.locator("[data-waiting], .htmx-request")).to_have_count(0)

    def check(self) -> None:
        """Fail with what went wrong."""
        assert [one for one in self.trouble if not any(part in one for part in self.expected)] == []

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.trouble.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.origin + "/", "data:")):
            self.trouble.append(f"foreign: {request.url}")

    def _dialog(self, dialog: Dialog) -> None:
        self.trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()


CODE = Path(__file__).resolve().parents[2] / "src/loom/access"
"""What the site's code namespace holds."""


@dataclass(frozen=True)
class Site:
    """A server with something in it, and the tokens of three people."""

    server: Server
    names: dict[str, str]
    tokens: dict[str, str]

    def link(self, role: str) -> str:
        """The path of a one-time link for one of them."""
        with self.server.client(self.tokens[role]) as http:
            return str(http.post("/v1/dashboard.link", json={}).json()["path"])


def store(http: httpx.Client) -> dict[str, str]:
    """Something on every page; the names that tests need."""

    def call(op: str, agent: str = "claude-code", **args: Any) -> dict[str, Any]:
        answer = http.post(f"/v1/{op}", json={"namespace": "local"} | args, headers={"x-loom-agent": agent})
        assert answer.status_code == 200, f"{op}: {answer.text[:500]}"
        return answer.json()

    words = ("tea", "deploys", "billing", "search", "garden")
    items = [
        {"memory_key": f"project/{word}/{number}", "value": f"We agreed on {word}, as of meeting {number}.",
         "memory_type": "decision", "tags": [word]}
        for number in range(14) for word in words
    ]  # fmt: skip
    call("memory.set_many", items=items)
    for value in ("We drink green tea at four.", "We drink black tea at five.\nBring a cup."):
        call("memory.set", memory_key="team/tea", value=value, tags=["people"])
    for label, text in (("persona", "Ada, an engineer in Lisbon."), ("preferences", "Answers briefly.\n" * 40)):
        call("profile.set", label=label, value=text, char_limit=900)
    for agent, count in (("claude-code", 5), ("codex", 2)):
        for _ in range(count):
            call("profile.render", agent=agent)
    messages = [
        {"role": "user", "content": "When do we deploy?"},
        {"role": "assistant", "content": "On Tuesday.\n\n```\nmake deploy\n```"},
    ]
    call("conversation.append", session="release", title="Planning the release", messages=messages)
    text = "# Handbook\n\nWelcome.\n\n## Tea\n\nTea is served at four in the kitchen.\n"
    document = call("knowledge.add", text=text, title="Team handbook", uri="handbook.md", tags=["people"])
    for number, title in ((12, "Crash on start when the store is locked"), (15, "LockedError: crash on start")):
        body = 'Traceback (most recent call last):\n  File "store.py", line 3, in open\nLockedError: busy'
        call("tracker.add", namespace="bugs", number=number, title=title, body=body)
    code = {"namespace": "app-code", "source": str(CODE)}
    call("code.index", **code)
    schema = {"type": "object", "properties": {"diet": {"type": "string"}, "city": {"type": "string"}}}
    call("profile.schema_set", namespace="people", json_schema=schema)
    call("memory.set", namespace="people", user_id="ada", memory_key="diet", value="vegetarian")
    hostile(call)
    for number in range(60):
        call("namespace.update", name="people", description=f"Who we are, for the {number}th time.")
    return {"document": document["document_id"]}


def hostile(call: Any) -> None:
    """Text that is out to be run, in every field that keeps text."""
    where = {"namespace": HOSTILE}
    one = {"memory_key": PROBE[:200], "memory_type": PROBE[:60], "tags": [PROBE[:100]], "source_trace": PROBE}
    call("memory.set", **where, **one, value="first")
    call("memory.set", **where, **one, value=PROBE)
    call("memory.lock", **where, memory_key=PROBE[:200], mode="no_delete", reason=PROBE)
    gone = {**where, "agent": "x<img src=x onerror=alert(2)>", "memory_key": f"gone {PROBE[:200]}"}
    call("memory.set", **gone, value=PROBE)
    call("memory.delete", **gone)
    call("profile.set", **where, label=f"s {PROBE[:200]}", value=PROBE)
    call("profile.render", agent="x<img src=x onerror=alert(2)>", **where)
    call("namespace.update", name=HOSTILE, description=PROBE)
    said = [{"role": "user", "content": PROBE, "speaker": PROBE}]
    call("conversation.append", **where, session=PROBE[:100], title=PROBE, messages=said)
    call(
        "knowledge.add",
        **where,
        text=f"# {PROBE}\n\n{PROBE}\n\n```\nbroken",
        title=PROBE,
        uri=PROBE,
        tags=[PROBE[:100]],
    )
    issue = {"title": PROBE, "body": f"{PROBE}\nLockedError: {PROBE}", "component": PROBE, "version": PROBE}
    for number in (1, 2):
        call("tracker.add", **where, number=number, labels=[PROBE[:100]], url=f"javascript:alert({number})", **issue)
