"""A small server for the command line: the notes of `edge_kit`, a transfer and tokens, all in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Annotated, Any

from edge_kit import Kit
from pydantic import Field
from starlette.types import ASGIApp

from loom.access.caller import Role
from loom.canonical import Json
from loom.config import Settings
from loom.edges.http import Lifecycle
from loom.ops.dispatch import Dispatcher
from loom.ops.registry import Registry
from loom.ops.spec import Answer, Context, Kind, Op, ServerRequest

Line = dict[str, Any]


class ExportRequest(ServerRequest):
    """Where to go on."""

    cursor: Annotated[str, Field(description="Where the last page ended.")] = ""
    limit: Annotated[int, Field(description="Lines in a page.")] = 2


class ExportAnswer(Answer):
    """A page."""

    lines: Annotated[list[Line], Field(description="The lines.")]
    next_cursor: Annotated[str, Field(description="Where to go on; empty at the end.")]
    total: Annotated[int, Field(description="Lines in all.")]
    plane_orgs: Annotated[dict[str, str], Field(description="Orgs of planes; none here.")] = Field(default_factory=dict)


class ImportRequest(ServerRequest):
    """Lines to keep."""

    lines: Annotated[list[Line], Field(description="The lines.", max_length=500)]


class ImportAnswer(Answer):
    """What became of them."""

    imported: Annotated[int, Field(description="New ones.")]
    unchanged: Annotated[int, Field(description="Known ones.")]
    refused: Annotated[list[dict[str, Any]], Field(description="Index and reason of the bad ones.")]


class TokensAnswer(Answer):
    """Tokens."""

    tokens: Annotated[list[dict[str, Any]], Field(description="Each token.")]


@dataclass
class Store:
    """Lines and tokens; `page_length` is small, so that there are several pages."""

    lines: list[Line] = field(default_factory=list[Line])
    tokens: list[Line] = field(default_factory=list[Line])
    page_length: int = 2

    def export(self, ctx: Context, request: ExportRequest) -> ExportAnswer:
        del ctx
        start = int(request.cursor or "0")
        end = start + self.page_length
        more = str(end) if end < len(self.lines) else ""
        return ExportAnswer(lines=self.lines[start:end], next_cursor=more, total=len(self.lines))

    def import_(self, ctx: Context, request: ImportRequest) -> ImportAnswer:
        del ctx
        good = [line for line in request.lines if "key" in line]
        new = [line for line in good if line not in self.lines]
        self.lines += new
        refused = [
            {"line": index, "reason": "key: missing"} for index, line in enumerate(request.lines) if "key" not in line
        ]
        return ImportAnswer(imported=len(new), unchanged=len(good) - len(new), refused=refused)

    def list_tokens(self, ctx: Context, request: ServerRequest) -> TokensAnswer:
        del ctx, request
        return TokensAnswer(tokens=self.tokens)


class SmallServer(ModuleType):
    """Stands where `loom.compose` does."""

    def __init__(self) -> None:
        super().__init__("small_server")
        self.kit = Kit()
        self.store = Store()
        self.closed = 0
        self.settings: list[Settings] = []
        ops: Mapping[str, Json] = {}
        self.all = Registry(
            (
                *self.kit.registry,
                Op("store.export", "Read all.", ExportRequest, ExportAnswer, Role.ADMIN, Kind.READ,
                   self.store.export, ops),
                Op("store.import", "Keep all.", ImportRequest, ImportAnswer, Role.ADMIN, Kind.WRITE,
                   self.store.import_, {"lines": []}),
                Op("token.list", "Show tokens.", ServerRequest, TokensAnswer, Role.ADMIN, Kind.READ,
                   self.store.list_tokens, ops),
            )
        )  # fmt: skip

    def build(self, settings: Settings, *, embeds: bool = True) -> "SmallApp":
        del embeds
        self.settings.append(settings)
        return SmallApp(self, replace(self.kit.dispatcher, registry=self.all))

    def registry(self) -> Registry:
        return self.all


@dataclass
class SmallApp:
    """What `build` gives."""

    server: SmallServer
    dispatcher: Dispatcher

    @property
    def asgi(self) -> ASGIApp:
        return self.server.kit.app()

    @property
    def lifecycle(self) -> Lifecycle:
        return self.server.kit.lifecycle

    def start(self) -> None: ...

    def settle(self, show: Callable[[int], None] | None) -> int:
        del show
        return 0

    def close(self) -> None:
        self.server.closed += 1
