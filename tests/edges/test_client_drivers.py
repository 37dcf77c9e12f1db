"""The client's two drivers, over a small server and over a network that fails."""

from collections.abc import Callable

import anyio
import httpx
import pytest
from edge_kit import Kit, token_only

from loom.client import AsyncLoom, Loom
from loom.errors import NotFound, Unauthenticated, Unavailable

HERE = "http://localhost:7777"


def test_a_note_goes_round(kit: Kit) -> None:
    async def go() -> None:
        transport = httpx.ASGITransport(kit.app())
        async with AsyncLoom(HERE, transport=transport, namespace="team", agent="helper") as loom:
            made = await loom.call("note.set", {"key": "a", "value": "tea", "agent": "other"})
            assert (made["who"]["namespace"], made["who"]["agent"]) == ("team", "other")
            assert (await loom.call("note.get", {"key": "a"}))["value"] == "tea"
            with pytest.raises(NotFound) as caught:
                await loom.call("note.get", {"key": "b"})
            assert caught.value.extras["request_id"]

    anyio.run(go)


def test_the_token_is_sent_and_a_wrong_one_refused(kit: Kit) -> None:
    async def go(token: str | None) -> str:
        async with AsyncLoom(HERE, token, transport=httpx.ASGITransport(kit.app(token_only))) as loom:
            made = await loom.call("note.set", {"key": "a", "value": "tea", "agent": "x"})
            return made["who"]["org"]

    assert anyio.run(go, "writer") == "acme"
    with pytest.raises(Unauthenticated) as caught:
        anyio.run(go, "wrong")
    assert "wrong" not in str(caught.value)


def answering(*answers: httpx.Response | httpx.TransportError) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        given = answers[len(seen) - 1]
        if isinstance(given, httpx.TransportError):
            raise given
        return given

    return httpx.MockTransport(answer), seen


def test_the_blocking_driver_tries_again() -> None:
    transport, seen = answering(httpx.ConnectError("no"), httpx.Response(200, json={"done": True}))
    with Loom(HERE, transport=transport, user_id="ann") as loom:
        assert loom.call("note.set", {"key": "a"}) == {"done": True}
    assert [request.read() for request in seen] == [b'{"user_id":"ann","key":"a"}'] * 2


def test_the_waiting_driver_tries_again() -> None:
    transport, seen = answering(httpx.ConnectError("no"), httpx.Response(200, json={"done": True}))

    async def go() -> dict[str, object]:
        async with AsyncLoom(HERE, transport=transport) as loom:
            return await loom.call("note.set", {"key": "a"})

    assert anyio.run(go) == {"done": True}
    assert len(seen) == 2


@pytest.mark.parametrize("make", [httpx.ReadTimeout, httpx.WriteTimeout])
def test_a_timeout_names_no_address(make: Callable[[str], httpx.TransportError]) -> None:
    transport, seen = answering(make(f"late at {HERE}"))
    with Loom(HERE, transport=transport) as loom, pytest.raises(Unavailable) as caught:
        loom.call("note.get", {"key": "a"})
    assert "localhost" not in str(caught.value)
    assert len(seen) == 1
