"""A user's structured profile on a real server, built without a language model, from the schema to the last fact."""

import json
from typing import Any

import pytest

from running import Server, wait_until

pytestmark = pytest.mark.slow

READY_S = 60.0
NAMESPACE = "structured"
KEY = "loom/structured-profile"
SECRET = "plumbago@example.com"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "diet": {"enum": ["any", "vegetarian", "vegan"], "description": "What the user eats."},
        "children": {"type": "integer", "description": "Number of children the user has."},
        "contact_email": {"type": "string", "format": "email", "description": "The user's email address."},
        "born_on": {"type": "string", "format": "date", "description": "Date of birth of the user."},
    },
}
NOTHING: dict[str, Any] = dict.fromkeys(SCHEMA["properties"])


class Ada:
    """The user, seen through the server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def call(self, op: str, **args: Any) -> dict[str, Any]:
        return self._server.call(op, **{"namespace": NAMESPACE, "agent": "a", "user_id": "ada", **args})

    def on(self, op: str, key: str, **args: Any) -> dict[str, Any]:
        return self.call(f"memory.{op}", memory_key=key, **args)

    def profile(self) -> dict[str, Any]:
        return self.call("profile.structured")

    def ready(self) -> dict[str, Any]:
        """The profile once it is current."""
        wait_until(lambda: self.profile()["status"] == "ready", READY_S)
        return self.profile()

    def evidence(self) -> dict[str, list[dict[str, Any]]]:
        return {one["property"]: one["sources"] for one in self.call("profile.evidence")["properties"]}

    def told(self) -> str:
        """All that reads tell of the profile."""
        export = self._server.call("store.export", namespace=NAMESPACE)
        return json.dumps(
            [self.profile(), self.evidence(), self.on("get", KEY), self.on("history", KEY), export, self.listed()]
        )

    def listed(self) -> dict[str, Any]:
        return self.call("memory.list", memory_types=["structured_profile"], bodies="full")


def test_a_profile_from_its_schema_to_the_last_fact(server: Server) -> None:
    ada = Ada(server)
    assert (ada.profile()["status"], ada.profile()["profile"]) == ("no_schema", {})
    ada.on("set", "user/diet", value="Has been vegan since 2021.")
    ada.on("set", "note/1", value={"children": 3, "pets": 1})
    ada.on("set", "note/2", value=f"Write to {SECRET}.", tags=["profile:contact_email"])
    ada.on("set", "note/3", value="Her sister's diet is vegetarian.")
    ada.call("profile.schema_set", json_schema=SCHEMA)
    built = ada.ready()
    assert built["profile"] == {**NOTHING, "diet": "vegan", "children": 3, "contact_email": SECRET}
    assert (built["version_text"], built["memory_id"]) == (str(built["version"]), ada.on("get", KEY)["memory_id"])
    evidence = ada.evidence()
    assert [one["memory_key"] for one in evidence["diet"]] == ["user/diet"]
    assert evidence["diet"][0]["text"] == "Has been vegan since 2021."
    assert evidence["born_on"] == []

    edited(ada, built["version"])
    erased(ada)
    ended(ada)


def edited(ada: Ada, before: int) -> None:
    """An edit makes it stale at once and ready soon; a lock and an unlock leave its time."""
    ada.on("set", "user/diet", value="Is vegetarian now.")
    assert ada.profile()["status"] in ("stale", "ready")
    built = ada.ready()
    assert built["profile"]["diet"] == "vegetarian"
    assert built["version"] > before
    for mode in ("read_only", ""):
        ada.on("lock", KEY, mode=mode, reason="looked at")
        assert ada.profile()["built_at"] == built["built_at"]
        assert ada.profile()["status"] == "ready"


def erased(ada: Ada) -> None:
    """What is made sensitive or redacted is gone from the profile, its evidence and its history."""
    ada.on("update", "user/diet", sensitivity="high")
    assert ada.profile()["profile"]["diet"] is None
    assert "vegetarian" not in json.dumps(ada.evidence())
    ada.on("redact", "note/2")
    assert ada.profile()["profile"]["contact_email"] is None
    assert SECRET not in ada.told()
    built = ada.ready()
    assert built["profile"] == {**NOTHING, "children": 3}
    assert SECRET not in ada.told()


def ended(ada: Ada) -> None:
    """Without a fact nothing is left, and the row's history is the profile's."""
    for key in ("note/1", "note/3"):
        ada.on("delete", key)
    ended = ada.profile()
    assert (ended["status"], ended["profile"]) == ("ready", NOTHING)
    wait_until(lambda: ada.profile()["memory_id"] == "", READY_S)
    assert (ada.profile()["built_at"], ada.profile()["version"]) == (None, 0)
    ada.on("restore", "note/1")
    assert ada.ready()["profile"] == {**NOTHING, "children": 3}
    assert all(one["memory_type"] == "structured_profile" for one in ada.on("history", KEY)["versions"])
    ada.call("profile.schema_delete")
    assert ada.profile()["status"] == "no_schema"
