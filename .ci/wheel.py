# ruff: noqa: INP001
"""Builds the wheel, installs it alone in a new environment, and tests a server started from it.

What users install is the wheel, not the source folder: a data file that was left out of it, or a
dependency that only the tests declare, shows here and nowhere else.

    python .ci/wheel.py [--contract FOLDER]    FOLDER holds test_contract.py; left out when it is not there
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent
STEP_TIMEOUT_S = 900
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60
LISTENS = re.compile(r"Loom listens on (\S+)")


def main() -> int:
    """Build, install, serve, test; the exit code."""
    options = argparse.ArgumentParser(description="Build the wheel and test it alone.")
    options.add_argument("--contract", type=Path)
    contract: Path | None = options.parse_args().contract
    with tempfile.TemporaryDirectory(prefix="loom-wheel-") as scratch:
        folder = Path(scratch)
        program = installed(built(folder / "dist"), folder / "venv")
        with serving(program, folder) as url:
            goes_round(url)
            if contract is not None and (contract / "test_contract.py").exists():
                run_contract(contract.resolve(), url, folder)  # the tests run in another folder
            else:
                say("no contract tests here; left out")
    say("the wheel works alone")
    return 0


def built(folder: Path) -> Path:
    """The wheel, built from the sources."""
    say("building the wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, place: Path) -> Path:
    """The `loom` program of a new environment that holds the wheel and what it needs."""
    say(f"installing {wheel.name} alone")
    venv.create(place, with_pip=True)
    scripts = place / ("Scripts" if os.name == "nt" else "bin")
    run(str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    found = shutil.which("loom", path=str(scripts))
    if found is None:
        raise SystemExit("the wheel installs no `loom` program")
    return Path(found)


@contextmanager
def serving(program: Path, folder: Path) -> Iterator[str]:
    """The URL of a server of that program, on a store of its own."""
    process = subprocess.Popen(  # noqa: S603  # our own program
        [str(program), "serve", "--port", "0", "--home", str(folder / "home")],
        cwd=folder,
        env=clean_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    alarm = threading.Timer(START_TIMEOUT_S, process.kill)
    alarm.start()
    try:
        yield announced(process)
    finally:
        alarm.cancel()
        process.terminate()
        process.wait(STOP_TIMEOUT_S)


def announced(process: "subprocess.Popen[str]") -> str:
    """The address the server says it listens on; what it says later is passed on."""
    if process.stderr is None:
        raise SystemExit("the server's standard error is not open")
    for line in process.stderr:
        found = LISTENS.search(line)
        if found:
            threading.Thread(target=shutil.copyfileobj, args=(process.stderr, sys.stderr), daemon=True).start()
            return found[1]
        sys.stderr.write(line)
    raise SystemExit("the server ended, or did not listen in time")


def goes_round(url: str) -> None:
    """A memory is written, found, and shown by the dashboard with its files."""
    with httpx.Client(base_url=url, timeout=60) as http:
        http.get("/readyz").raise_for_status()
        body = {"memory_key": "team/tea", "value": "We drink green tea at four."}
        http.post("/v1/memory.set", json=body).raise_for_status()
        found = http.post("/v1/search.query", json={"query": "when is tea?"}).raise_for_status().json()
        page = http.get("/memories", headers={"accept": "text/html"}).raise_for_status().text
        files = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
        for file in files:
            http.get(file).raise_for_status()
    if "team/tea" not in str(found):
        raise SystemExit("the memory that was written is not found")
    if "team/tea" not in page or not files:
        raise SystemExit("the dashboard does not show the memory that was written")


def run_contract(contract: Path, url: str, folder: Path) -> None:
    """The contract's tests against the server; they import nothing of Loom."""
    say("running the contract tests")
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(contract), str(contract)]
    run(sys.executable, *tests, cwd=folder, env=clean_environment() | {"LOOM_URL": url, "PYTHONDONTWRITEBYTECODE": "1"})


def clean_environment() -> dict[str, str]:
    """The environment without settings of Loom."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LOOM_")}


def run(*command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a step; stop when it fails."""
    subprocess.run(command, cwd=cwd, env=env, check=True, timeout=STEP_TIMEOUT_S)  # noqa: S603  # our own steps


def say(text: str) -> None:
    """One line for the reader of the log."""
    sys.stdout.write(f"wheel: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
