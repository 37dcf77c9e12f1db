"""Health for whatever watches the server, and metrics for whoever may see them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import anyio
from starlette.requests import Request
from starlette.responses import Response

from loom.access.caller import Role
from loom.edges.http.calls import Authenticate
from loom.edges.http.lifecycle import Lifecycle
from loom.edges.http.messages import authorization_of, error_headers, json_of
from loom.edges.http.metrics import METRICS_MEDIA, Metrics
from loom.edges.workers import Workers
from loom.errors import Denied, LoomError, Unavailable
from loom.storage.interface import StoreError

CHECK_TIMEOUT_S = 5.0

Check = Callable[[], str | None]
"""Looks at one part of the server: None when it serves, else a sentence without stored text."""


@dataclass(frozen=True, slots=True)
class Probes:
    """The endpoints that say how the server is."""

    checks: Mapping[str, Check]
    metrics: Metrics
    authenticate: Authenticate
    workers: Workers
    lifecycle: Lifecycle

    async def healthz(self, _: Request) -> Response:
        """The process runs."""
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def readyz(self, _: Request) -> Response:
        """Calls are served and every check passes; else 503 with the reasons."""
        reasons = [self.lifecycle.why_closed] if self.lifecycle.why_closed else []
        if not reasons:
            for name, check in self.checks.items():
                reason = await self._reason(check)
                if reason is not None:
                    reasons.append(f"{name}: {reason}")
        if not reasons:
            return Response(b'{"status":"ready"}', media_type="application/json")
        error = Unavailable("the server is not ready", retry_after_s=1, reasons=reasons)
        return Response(json_of(error.body()), 503, error_headers(error), "application/json")

    async def numbers(self, request: Request) -> Response:
        """Metrics, for an admin; the single user of a server without tokens is one."""
        authorization = authorization_of(request.scope)

        def work() -> bytes:
            if self.authenticate(authorization).role < Role.ADMIN:
                raise Denied("metrics need the admin role")
            return self.metrics.text()

        return Response(await self.workers.run(work), media_type=METRICS_MEDIA)

    async def _reason(self, check: Check) -> str | None:
        try:
            with anyio.fail_after(CHECK_TIMEOUT_S):
                return await anyio.to_thread.run_sync(check, abandon_on_cancel=True)
        except TimeoutError:
            return f"no answer within {CHECK_TIMEOUT_S:.0f} s"
        except LoomError as error:
            return error.message
        except StoreError as error:
            return str(error)
        except OSError as error:
            return type(error).__name__
