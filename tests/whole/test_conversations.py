"""Conversations through a real server and the real model: imported over HTTP, found by meaning, on both transports."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from running import Server, wait_until

pytestmark = pytest.mark.slow

SAID = (
    ("user", "Where shall we keep the embeddings?"),
    ("assistant", "In the same SQLite file as the rows, so that one transaction changes both."),
    ("user", "And what do we have for lunch?"),
    ("assistant", "Lentil soup, I would say."),
)
VECTORS_TIMEOUT_S = 60.0


def transcript(path: Path) -> Path:
    lines = [
        {
            "type": role,
            "uuid": f"u{number}",
            "sessionId": "zoo-keepers",
            "timestamp": f"2026-03-01T10:0{number}:00Z",
            "message": {"role": role, "content": text},
        }
        for number, (role, text) in enumerate(SAID)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n{broken\n", "utf-8")
    return path


def test_a_transcript_is_imported_over_http_and_found_by_meaning(server: Server, tmp_path: Path) -> None:
    path = transcript(tmp_path / "zoo.jsonl")
    command = [sys.executable, "-m", "loom", "import", "claude-code", str(path), "--namespace", "talks", "--json"]
    for imported in (4, 0):
        done = subprocess.run([*command, "--url", server.url], capture_output=True, text=True, timeout=60, check=False)
        answer = json.loads(done.stdout)
        assert (done.returncode, answer["imported"], answer["unchanged"]) == (1, imported, 4 - imported)
        assert answer["refused"] == [{"file": "zoo.jsonl", "line": 5, "reason": "is not JSON"}]
    for op, section in (("conversation.search", None), ("search.query", "conversations")):
        found = server.call(op, namespace="talks", query="location of the vectors in our database", top_k=2)
        results = (found if section is None else found[section])["results"]
        assert {hit["message_id"] for hit in results} == {"u0", "u1"}, op


def test_a_big_append_answers_before_its_vectors_are_made(server: Server) -> None:
    messages = [{"role": "user", "content": f"Note {n}: the heron eats {n} fishes."} for n in range(300)]
    messages.append({"role": "user", "content": "The treasurer resigned over an unpaid invoice."})
    start_s = time.monotonic()
    answer = server.call("conversation.append", namespace="big", session="s", messages=messages)
    answered_s = time.monotonic()
    assert answer["appended"] == 301
    assert server.call("conversation.search", namespace="big", query="treasurer invoice", top_k=1)["results"]

    def nearest() -> list[dict[str, Any]]:
        asked = {"namespace": "big", "query": "who left because of money owed?", "top_k": 1}
        return server.call("conversation.search", **asked)["results"]

    wait_until(lambda: any("treasurer" in hit["text"] for hit in nearest()), VECTORS_TIMEOUT_S)
    wait_until(lambda: server.call("ops.health")["jobs_waiting"] == 0, VECTORS_TIMEOUT_S)
    assert nearest()[0]["similarity"] > 0.5
    assert answered_s - start_s < time.monotonic() - answered_s, "the vectors took longer than the answer"
