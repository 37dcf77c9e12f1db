"""Where a call's identity comes from: token, request, transport, install; first match wins."""

from collections.abc import Mapping
from typing import Any

from loom.access.caller import Caller, Install, ReadScope, Transport
from loom.errors import Denied, Rejected
from loom.ops.spec import IDENTITY_FIELDS, IDENTITY_LENGTH_MAX, NONE, AnyOp, Request, plane_of
from loom.ops.text_checks import has_control

NOT_GIVEN = (None, "", NONE)
ANY_AGENT = "*"
CODE_PLANE = "code"
"""Whose operations work on the client's project where no namespace is named: a namespace of code is one repository."""

NAMED_MAX = 20
"""Of a token's namespaces, how many a refusal names."""

SCOPES = {scope.word: scope for scope in ReadScope}


def filled(
    op: AnyOp, caller: Caller, transport: Transport, install: Install, args: Mapping[str, Any]
) -> dict[str, Any]:
    """`args` with every identity field that can be known filled in.

    `-`, the empty string and null in an identity field mean "not given".

    Raises:
        Denied: a pinned field is sent otherwise, or a namespace the token does not reach.
        Rejected: an identity value is too long, holds a control character or is no text.
    """
    known = dict(args)
    for field in IDENTITY_FIELDS:
        given = known.pop(field, None)
        _check(field, given)
        value = _first(
            _pinned(caller, field, given),
            given,
            _from_transport(op, caller, transport, field),
            _from_install(op, caller, install, field),
        )
        if value is not None:
            known[field] = value
        elif given is not None or caller.tokenless or not op.takes.model_fields[field].is_required():
            known[field] = NONE
    _check_namespace(op, caller, known)
    return known


def scope_of(op: AnyOp, caller: Caller, args: Mapping[str, Any]) -> ReadScope:
    """The narrower of the token's ceiling and the scope the request asks for, where the operation takes one."""
    asked = args.get("read_scope") if "read_scope" in op.takes.model_fields else None
    wanted = SCOPES.get(asked, ReadScope.NAMESPACE) if isinstance(asked, str) else ReadScope.NAMESPACE
    return min(caller.read_scope, wanted)


def doer(caller: Caller, transport: Transport, request: Request) -> str:
    """The agent that calls, as far as it is known: a request can name another one, whose row it means."""
    client = transport.agent
    if client is not None and (len(client) > IDENTITY_LENGTH_MAX or has_control(client)):
        client = None
    named = NONE if request.agent == ANY_AGENT else request.agent
    return caller.pins.get("agent") or client or named


def check_one_agent(request: Request) -> None:
    """Rejected when a new row would belong to any agent."""
    if request.agent == ANY_AGENT:
        raise Rejected("agent: '*' stands for any agent and cannot write; name one, or '-' for none", field="agent")


def _first(*values: object) -> object:
    return next((value for value in values if value not in NOT_GIVEN), None)


def _check(field: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise Rejected(f"{field}: should be a text", field=field)
    if len(value) > IDENTITY_LENGTH_MAX:
        raise Rejected(f"{field}: at most {IDENTITY_LENGTH_MAX} characters", field=field)
    if has_control(value):
        raise Rejected(f"{field}: control characters are not allowed", field=field)


def _pinned(caller: Caller, field: str, given: object) -> str | None:
    pin = caller.pins.get(field)
    if pin is not None and given not in (*NOT_GIVEN, pin) and not (field == "agent" and given == ANY_AGENT):
        raise Denied(f"{field}: this token is limited to another {field}; leave the field out", field=field)
    return pin


def _from_transport(op: AnyOp, caller: Caller, transport: Transport, field: str) -> str | None:
    value = {"agent": transport.agent, "session_id": transport.session_id}.get(field)
    if field == "namespace" and plane_of(op) == CODE_PLANE and transport.project and caller.reaches(transport.project):
        value = transport.project
    if value is None or len(value) > IDENTITY_LENGTH_MAX or has_control(value):
        return None
    return value


def _from_install(op: AnyOp, caller: Caller, install: Install, field: str) -> str | None:
    if not caller.tokenless:
        only = caller.namespaces if field == "namespace" else None
        return next(iter(only)) if only is not None and len(only) == 1 else None
    if field == "org":
        return install.plane_orgs.get(plane_of(op), install.org)
    return {"namespace": install.namespace, "agent": install.agent}.get(field)


def _check_namespace(op: AnyOp, caller: Caller, known: dict[str, Any]) -> None:
    namespace = known.get("namespace", NONE)
    if namespace == NONE:
        if op.takes.model_fields["namespace"].is_required():
            reached = sorted(caller.namespaces or ())[:NAMED_MAX]
            which = f": {', '.join(reached)}" if reached else "; namespace.list shows them"
            raise Rejected(f"namespace: required; name one the token reaches{which}", field="namespace")
        return
    if caller.reaches(namespace):
        return
    raise Denied("namespace: this token does not reach it", field="namespace")
