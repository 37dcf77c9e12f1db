"""The settings: one table of name, type, default, unit and meaning.

This is the only module that reads the environment and `loom.toml`. A value
comes from the first place that has it: the environment (`LOOM_PORT`), then
`loom.toml` in the working folder, then `loom.toml` in the home folder, then
the default here. `docs/reference/settings.md` is generated from this table.

A folder that somebody else wrote may hold a `loom.toml`, so the settings that decide where
a token or a memory is sent, or what tokens have read, are not read from the working folder.
"""

import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin
from urllib.parse import urlsplit

from platformdirs import PlatformDirs
from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

ENV_PREFIX = "LOOM_"
FILE_NAME = "loom.toml"
HOME_FILE_ONLY = frozenset(
    {"url", "token", "database_url", "database_replica_url", "writer_url", "writer_model", "writer_api_key"}
    | {"embedder_url", "embedder_model", "embedder_api_key", "code_folders", "code_git_private_hosts"}
)
ENVIRONMENT_ONLY = frozenset({"session", "project_dir"})
ENV_NAMES: Mapping[str, tuple[str, ...]] = {
    "session": ("LOOM_SESSION", "CLAUDE_CODE_SESSION_ID"),
    "project_dir": ("LOOM_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
}
"""Settings that coding agents hand to the processes they start, under names of their own."""


HOST_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")

GIT_INHERITS = (
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "SYSTEMROOT",
    "SSH_AUTH_SOCK",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "GIT_SSL_CAINFO",
)
"""What a `git` that is run sees of the server's environment."""


class BadSettings(Exception):
    """A setting is unknown or its value cannot be used; the message names it and where it stands."""


def _user_data_folder() -> Path:
    return Path(PlatformDirs("loom", appauthor=False).user_data_dir)


def _words(value: object) -> object:
    """`a, b` as two words, so that a list fits in an environment variable."""
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


def _endpoint(url: str) -> str:
    """The address of an endpoint, without a slash at its end; ValueError when it is none, or holds more than that."""
    if not url.strip():
        return ""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("an address like https://host/v1, with nothing behind the path")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a login; the key belongs in writer_api_key or embedder_api_key (LOOM_WRITER_API_KEY)")
    return url.strip().rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings")


def _host(text: str) -> str:
    """A host's name, an address, or a network like 10.0.0.0/8, in one spelling; ValueError when it is none."""
    try:
        return str(ipaddress.ip_network(text)).removesuffix("/32").removesuffix("/128")
    except ValueError:
        if not HOST_NAME.fullmatch(text) or "/" in text:
            raise ValueError("names of hosts, addresses, or networks like 10.0.0.0/8") from None
        return text.lower()


def _sendable(key: SecretStr) -> SecretStr:
    """The key, once a header can carry it."""
    if not all(" " < c <= "~" for c in key.get_secret_value()):
        raise ValueError("holds a space, a line break or a character that no key has")
    return key


def _setting(default: object, meaning: str, *, unit: str = "", **bounds: int) -> Any:
    return Field(default=default, description=meaning, json_schema_extra={"unit": unit}, **cast("Any", bounds))


def _made_setting(make: Callable[[], object], shown: str, meaning: str) -> Any:
    return Field(default_factory=make, description=meaning, json_schema_extra={"unit": "", "shown_default": shown})


def _borrowed_setting(name: str, meaning: str) -> Any:
    return Field(
        default=None,
        description=meaning,
        validation_alias=AliasChoices(*ENV_NAMES[name]),
        json_schema_extra={"unit": ""},
    )


def _whole_path(path: Path) -> Path:
    return path.expanduser().absolute()


Folder = Annotated[Path, AfterValidator(_whole_path)]
"""A folder; `~` and relative paths are made whole."""

EndpointUrl = Annotated[str, AfterValidator(_endpoint)]
"""The address of a service, without a secret in it."""

ApiKey = Annotated[SecretStr, AfterValidator(_sendable)]
"""A key that is sent in a header."""

Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]
"""A list of words; separated by commas in the environment."""

Folders = Annotated[tuple[Folder, ...], NoDecode, BeforeValidator(_words)]
"""A list of folders; separated by commas in the environment."""

Hosts = Annotated[tuple[Annotated[str, AfterValidator(_host)], ...], NoDecode, BeforeValidator(_words)]
"""A list of names of hosts, addresses and networks; separated by commas in the environment."""


class Settings(BaseSettings):
    """Every setting of Loom. Frozen: rooms receive values, not this object."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    home: Folder = _made_setting(
        _user_data_folder, "the user's data folder", "Folder that holds the store, `loom.toml`, logs and lock files."
    )
    host: str = _setting("127.0.0.1", "Address to listen on. One that is not loopback needs tokens.")
    port: int = _setting(7777, "Port to listen on; 0 lets the system choose.", ge=0, le=65_535)
    allowed_hosts: Words = _setting(
        (), "Further `Host` names to answer to, beside loopback and the address listened on."
    )
    allowed_origins: Words = _setting((), "Web origins whose pages may call the server, beside its own.")
    body_bytes_max: int = _setting(4 * 1024 * 1024, "Largest request body.", unit="bytes", ge=1024)
    shutdown_timeout_s: int = _setting(10, "How long running calls may finish when the server stops.", unit="s", ge=0)
    reads_per_minute: int = _setting(6000, "Reads a token may make.", unit="calls a minute", ge=1)
    writes_per_minute: int = _setting(1200, "Writes a token may make.", unit="calls a minute", ge=1)
    mcp_toolset: Literal["default", "all"] = _setting("default", "The MCP tools to list; the others stay callable.")
    log_level: Literal["debug", "info", "warning", "error"] = _setting("info", "The least important line to log.")

    org: str = _setting("dev", "Org of a call without a token.", min_length=1, max_length=256)
    namespace: str = _setting("local", "Namespace of a call that names none.", min_length=1, max_length=256)
    agent: str = _setting("-", "Agent of a call that names none; `-` for none.", min_length=1, max_length=256)
    code_org: str = _setting("code", "Org that keeps the code plane of a server without tokens.", min_length=1)
    tracker_org: str = _setting("tracker", "Org that keeps the tracker plane of a server without tokens.", min_length=1)
    code_git_schemes: Words = _setting(
        ("https", "file"),
        "Kinds of address that code.index fetches from: https, ssh, file. `file` is for admins in any case; with `ssh`,"
        " writers read what the server's own key reads.",
    )
    code_folders: Folders = _setting(
        (),
        "Folders of the server that an admin's token may have indexed, with all in them; none while it is empty."
        " Callers without a token may have any indexed.",
    )
    code_git_private_hosts: Hosts = _setting(
        (),
        "Hosts in the server's own network that tokens may have code fetched from: names, addresses or networks"
        " (`git.corp.example, 10.1.0.0/16`). Others are refused, as are addresses of the machine itself.",
    )

    synchronous: Literal["FULL", "NORMAL"] = _setting(
        "FULL", "SQLite's durability: FULL keeps every acknowledged write through a power cut, NORMAL through a crash."
    )
    database_url: SecretStr = _setting(
        SecretStr(""),
        "PostgreSQL to keep the store in, as `postgresql://user@host:5432/name`; empty for the home folder.",
    )
    database_connections_max: int = _setting(
        16, "Connections one server process may hold to PostgreSQL.", unit="connections", ge=2, le=1000
    )
    database_replica_url: SecretStr = _setting(
        SecretStr(""),
        "Replica of that PostgreSQL that serves searches, lists and rendered profiles, which may then be a moment"
        " behind; empty for none. While it fails, the database itself serves them.",
    )
    database_idle_s: int = _setting(
        30,
        "How long a transaction may stand still before PostgreSQL ends it: a server that hangs holds locks no longer.",
        unit="s",
        ge=1,
        le=600,
    )
    try_postgres: bool = _setting(
        default=False, meaning="Keep the store in a PostgreSQL that Loom starts in the home folder itself."
    )
    later_work: Literal["here", "elsewhere"] = _setting(
        "here", "Whether a server makes vectors and cleans up itself, or leaves that to `loom worker`."
    )
    tombstone_days: int = _setting(14, "How long a deleted memory can be restored.", unit="days", ge=0)
    audit_days: int = _setting(
        365, "How long the audit keeps what changed access or took information away.", unit="days", ge=1, le=36_500
    )
    vector_cache_mb: int = _setting(
        512, "Memory for vectors kept ready to search; one of the built-in model takes 1.7 KiB.", unit="MiB", ge=1
    )

    embedder: str = _setting(
        "builtin",
        "Turns text into vectors: `builtin`, `multilingual` (its extra), `openai` (an endpoint that speaks OpenAI's"
        " `/embeddings`), `fastembed:MODEL` (the extra fastembed), `hashing` (no model, for tests) or the folder of an"
        " ONNX model. Of a store that has vectors it is changed with `loom reindex`.",
        min_length=1,
    )
    embedder_url: EndpointUrl = _setting(
        "", "Endpoint of the embedder `openai`, as `https://host/v1`. What is stored and what is asked is sent there."
    )
    embedder_model: str = _setting("", "The model's name at that endpoint.")
    embedder_api_key: ApiKey = _setting(SecretStr(""), "Key that is sent to that endpoint; empty for none.")
    embedder_dimension: int = _setting(
        0, "Numbers of a vector to ask the model for; 0 for as many as it gives.", unit="numbers", ge=0, le=16_000
    )
    embedder_timeout_s: int = _setting(60, "How long one request there may take, with repeats.", unit="s", ge=1, le=600)
    embedder_query_prefix: str = _setting("", "Put before a question; E5 models in fastembed have `query: `.")
    embedder_passage_prefix: str = _setting("", "Put before what is stored; E5 models there have `passage: `.")
    writer_url: EndpointUrl = _setting(
        "",
        "Endpoint of a language model that speaks OpenAI's `/chat/completions`, as `https://host/v1`; empty for none."
        " Memories and messages are sent there.",
    )
    writer_model: str = _setting("", "That model's name at the endpoint; empty for no language model.")
    writer_api_key: ApiKey = _setting(SecretStr(""), "Key that is sent to that endpoint; empty for none.")
    writer_timeout_s: int = _setting(
        60, "How long one call of the language model may take, repeats included.", unit="s", ge=1, le=600
    )
    writer_context_tokens: int = _setting(
        8192, "What the language model takes and gives together.", unit="tokens", ge=2048
    )
    writer_output_tokens_max: int = _setting(
        2048, "Longest answer of the language model; at most half of its context.", unit="tokens", ge=64
    )
    leg_timeout_ms: int = _setting(2000, "How long search.query waits for each plane.", unit="ms", ge=1)
    memory_search_fanout_max_namespaces: int = _setting(
        20, "Namespaces one search over all of the caller's own may read.", unit="namespaces", ge=1
    )

    url: str = _setting("", "Server the command line talks to; empty for the store in the home folder.")
    token: SecretStr = _setting(SecretStr(""), "Token the command line sends to that server.")
    session: str | None = _borrowed_setting("session", "Conversation the stdio bridge puts on its calls.")
    project_dir: str | None = _borrowed_setting("project_dir", "Project folder the stdio bridge was started for.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment first, then what the files gave."""
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings


def load(folder: Path | None = None, home: Path | None = None) -> Settings:
    """The settings in force.

    Args:
        folder: the folder whose `loom.toml` counts; the working folder when None.
        home: the home folder, before every other place that may name it.

    Raises:
        BadSettings: a file cannot be read, holds an unknown key, or a value is not acceptable.
    """
    here = (folder or Path.cwd()) / FILE_NAME
    found = _parsed(here)
    named = os.environ.get(env_names("home")[0]) or str(found.get("home") or _user_data_folder())
    home = home or Path(named)
    at_home = home.expanduser().absolute() / FILE_NAME
    nearby: Mapping[str, object] = {} if at_home == here.absolute() else found
    _check(here, nearby, dict.fromkeys(HOME_FILE_ONLY, "in the home folder's loom.toml or in the environment"))
    kept = _parsed(at_home)
    _check(at_home, kept, {"home": "in the environment"})
    try:
        settings = Settings(**cast("Any", {**kept, **nearby}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        name = _name_of(str(first["loc"][0]))
        message = first["msg"].removeprefix("Value error, ")
        raise BadSettings(f"setting {name} ({env_names(name)[0]}): {message}") from None
    return settings.model_copy(update={"home": _whole_path(home)})


def env_names(name: str) -> tuple[str, ...]:
    """The environment variables a setting is read from, first match wins."""
    return ENV_NAMES.get(name, (ENV_PREFIX + name.upper(),))


def git_environment() -> dict[str, str]:
    """The whole environment of a `git` that nobody answers: it asks nothing and reads no settings of the machine."""
    kept = {name: os.environ[name] for name in GIT_INHERITS if name in os.environ}
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "https:ssh:file",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def table() -> list[dict[str, str]]:
    """A row for each setting: name, variable, type, default, unit, meaning; the reference page is made from it."""
    return [
        {
            "name": name,
            "variable": ", ".join(env_names(name)),
            "type": _shown_type(field.annotation),
            "default": _shown_default(field),
            "unit": str(_extra(field).get("unit", "")),
            "meaning": str(field.description),
        }
        for name, field in Settings.model_fields.items()
    ]


def _extra(field: FieldInfo) -> Mapping[str, object]:
    return cast("Mapping[str, object]", field.json_schema_extra or {})


def _shown_type(annotation: object) -> str:
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{word}`" for word in get_args(annotation))
    names: Mapping[object, str] = {Path: "folder", int: "number", bool: "`true` or `false`", SecretStr: "secret text"}
    if annotation in names:
        return names[annotation]
    if get_origin(annotation) is tuple:
        return "list of folders" if get_args(annotation)[0] is Folder else "list of texts"
    return "text"


def _shown_default(field: FieldInfo) -> str:
    shown = _extra(field).get("shown_default")
    if shown is not None:
        return str(shown)
    value = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    empty = value is None or value == () or not str(value)
    return "" if empty else f"`{field.default}`"


def _name_of(place: str) -> str:
    return next((name for name in ENV_NAMES if place in ENV_NAMES[name]), place)


def _parsed(path: Path) -> Mapping[str, object]:
    """The values of one file; empty when there is none."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: cannot be read ({type(error).__name__})") from None
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{path}: is not TOML: {error}") from None


def _check(path: Path, values: Mapping[str, object], elsewhere: Mapping[str, str]) -> None:
    """BadSettings for a key that no setting has, or that belongs elsewhere."""
    for key in values:
        if key not in Settings.model_fields:
            raise BadSettings(f"{path}: unknown setting {key!r}; docs/reference/settings.md lists them")
        place = "in the environment" if key in ENVIRONMENT_ONLY else elsewhere.get(key)
        if place:
            raise BadSettings(f"{path}: {key!r} is not read here; set it {place}")
