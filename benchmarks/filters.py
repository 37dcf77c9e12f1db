"""Whether the filters of memory.search let through all that they should, and nothing else."""

from loom.client import Loom
from talks import Dialogue

TOP_K = 100


def check(client: Loom, namespace: str, dialogue: Dialogue) -> None:
    """Ask for each session's tag: every hit must have it, and as many must come as there are, up to a hundred.

    Raises:
        SystemExit: a filter is not exact.
    """
    for session in sorted({turn.session for turn in dialogue.turns}):
        keys = {turn.key for turn in dialogue.turns if turn.session == session}
        asked = {"namespace": namespace, "query": "what was said?", "top_k": TOP_K, "bodies": "none"}
        answer = client.call("memory.search", {**asked, "tags": [f"session-{session}"]})
        found = {hit["memory_key"] for hit in answer["results"]}
        if not found <= keys or len(found) != min(TOP_K, len(keys)):
            raise SystemExit(f"the tag of session {session} found {len(found)} memories of {len(keys)}, or others")
    print(f"tags: exact in {len({turn.session for turn in dialogue.turns})} sessions")
