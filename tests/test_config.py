"""Settings: where a value comes from, and what is refused."""

from pathlib import Path

import pytest

from loom import compose, config
from loom.compose.models import Breakers
from loom.storage.interface import StoreError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for field in config.Settings.model_fields:
        for name in config.env_names(field):
            monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("LOOM_HOME", str(home))
    return home


@pytest.fixture
def here(home: Path, tmp_path: Path) -> Path:
    assert home.is_dir()
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_defaults(home: Path, here: Path) -> None:
    settings = config.load(here)
    assert (settings.home, settings.host, settings.port, settings.org) == (home, "127.0.0.1", 7777, "dev")


def test_environment_before_folder_before_home(home: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "loom.toml").write_text('port = 1\nlog_level = "error"\nagent = "at-home"\n')
    (here / "loom.toml").write_text('port = 2\nlog_level = "debug"\n')
    monkeypatch.setenv("LOOM_PORT", "3")
    settings = config.load(here)
    assert (settings.port, settings.log_level, settings.agent) == (3, "debug", "at-home")


def test_an_empty_variable_is_not_set(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_PORT", "")
    assert config.load(here).port == 7777


def test_lists_are_separated_by_commas(home: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "loom.toml").write_text('allowed_origins = ["https://a.example"]\n')
    monkeypatch.setenv("LOOM_ALLOWED_HOSTS", "a.example, b.example")
    settings = config.load(here)
    assert settings.allowed_hosts == ("a.example", "b.example")
    assert settings.allowed_origins == ("https://a.example",)


def test_folders_are_made_whole(home: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "loom.toml").write_text('code_folders = ["~/code", "/srv/a,b"]\n')
    assert config.load(here).code_folders == (Path("~/code").expanduser(), Path("/srv/a,b"))
    monkeypatch.setenv("LOOM_CODE_FOLDERS", "/srv/code, elsewhere")
    settings = config.load(here)
    assert settings.code_folders == (Path("/srv/code"), Path.cwd() / "elsewhere")
    assert compose.limits(settings).code_folders == settings.code_folders


def test_hosts_are_names_addresses_and_networks(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_CODE_GIT_PRIVATE_HOSTS", "Git.Corp.example,10.0.0.5, 10.1.0.0/16,FD00::05")
    settings = config.load(here)
    assert settings.code_git_private_hosts == ("git.corp.example", "10.0.0.5", "10.1.0.0/16", "fd00::5")
    assert compose.limits(settings).git_private_hosts == settings.code_git_private_hosts
    for wrong in ("https://git.example", "10.1.0.1/16", "10.1", "a b", "git.example/x"):
        monkeypatch.setenv("LOOM_CODE_GIT_PRIVATE_HOSTS", wrong)
        with pytest.raises(config.BadSettings, match="names of hosts, addresses, or networks"):
            config.load(here)


def test_the_folder_may_choose_a_home(here: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOM_HOME")
    (here / "loom.toml").write_text(f'home = "{home}"\n')
    (home / "loom.toml").write_text("port = 9\n")
    assert config.load(here).port == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1\n", "unknown setting 'prot'"),
        ('url = "http://evil.example"\n', "'url' is not read here"),
        ('token = "stolen"\n', "'token' is not read here"),
        ('writer_url = "http://evil.example"\n', "'writer_url' is not read here"),
        ('writer_api_key = "stolen"\n', "'writer_api_key' is not read here"),
        ('embedder_api_key = "stolen"\n', "'embedder_api_key' is not read here"),
        ('embedder_url = "https://e.example/v1"\n', "'embedder_url' is not read here"),
        ('session = "s"\n', "'session' is not read here"),
        ('code_folders = ["/"]\n', "'code_folders' is not read here"),
        ('code_git_private_hosts = ["127.0.0.1"]\n', "'code_git_private_hosts' is not read here"),
        ("port = ", "is not TOML"),
        ("port = 70000\n", "setting port (LOOM_PORT)"),
        ('synchronous = "OFF"\n', "setting synchronous (LOOM_SYNCHRONOUS)"),
    ],
)
def test_a_folder_file_that_is_refused(here: Path, text: str, message: str) -> None:
    (here / "loom.toml").write_text(text)
    with pytest.raises(config.BadSettings) as caught:
        config.load(here)
    assert message in str(caught.value)
    assert "stolen" not in str(caught.value)


def test_the_home_file_holds_url_and_token_also_when_it_is_the_working_folder(home: Path) -> None:
    (home / "loom.toml").write_text('url = "http://127.0.0.1:1"\ntoken = "hush"\n')
    settings = config.load(home)
    assert settings.url == "http://127.0.0.1:1"
    assert settings.token.get_secret_value() == "hush"
    assert "hush" not in repr(settings)


def test_a_bad_variable_is_named_without_its_value(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOM_PORT", "seven")
    with pytest.raises(config.BadSettings, match="LOOM_PORT") as caught:
        config.load(here)
    assert "seven" not in str(caught.value)


def test_the_bridge_finds_its_session(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "from-client")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "here")
    settings = config.load(here)
    assert (settings.session, settings.project_dir) == ("from-client", "here")
    monkeypatch.setenv("LOOM_SESSION", "own")
    assert config.load(here).session == "own"


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, field in config.Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://llm.example/v1/", "https://llm.example/v1"),
        (" http://127.0.0.1:8080/v1/chat/completions ", "http://127.0.0.1:8080/v1"),
    ],
)
def test_an_endpoint_is_kept_in_one_form(here: Path, monkeypatch: pytest.MonkeyPatch, given: str, kept: str) -> None:
    monkeypatch.setenv("LOOM_WRITER_URL", given)
    assert config.load(here).writer_url == kept


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LOOM_WRITER_URL", "llm.example/v1"),
        ("LOOM_WRITER_URL", "ftp://llm.example/v1"),
        ("LOOM_WRITER_URL", "https://user:stolen@llm.example/v1"),
        ("LOOM_WRITER_URL", "https://llm.example/v1?key=stolen"),
        ("LOOM_WRITER_API_KEY", "stolen key"),
        ("LOOM_WRITER_API_KEY", "stolen\nX-Header: 1"),
        ("LOOM_WRITER_API_KEY", "stolen\u00e9"),
    ],
)
def test_an_endpoint_or_key_that_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(config.BadSettings) as caught:
        config.load(here)
    assert variable in str(caught.value)
    assert "stolen" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"LOOM_WRITER_URL": "https://llm.example/v1"}, "LOOM_WRITER_MODEL"),
        ({"LOOM_WRITER_MODEL": "m"}, "LOOM_WRITER_URL"),
        (
            {
                "LOOM_WRITER_URL": "https://llm.example/v1",
                "LOOM_WRITER_MODEL": "m",
                "LOOM_WRITER_OUTPUT_TOKENS_MAX": "8000",
            },
            "LOOM_WRITER_OUTPUT_TOKENS_MAX",
        ),
    ],
)
def test_half_a_language_model_stops_the_start(
    here: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], missing: str
) -> None:
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError) as caught:
        compose.build(config.load(here))
    assert missing in str(caught.value)


def test_a_language_model_is_off_until_it_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compose.writer(config.load(here), Breakers()) is None
    monkeypatch.setenv("LOOM_WRITER_URL", "https://llm.example/v1")
    monkeypatch.setenv("LOOM_WRITER_MODEL", "m")
    monkeypatch.setenv("LOOM_WRITER_API_KEY", "stolen")
    settings = config.load(here)
    writer = compose.writer(settings, Breakers())
    assert writer is not None
    assert (writer.endpoint, writer.model) == ("https://llm.example/v1", "m")
    assert "stolen" not in repr(settings) + repr(writer)
