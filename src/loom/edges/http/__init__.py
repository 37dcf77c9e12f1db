"""The HTTP face: `POST /v1/<op>`, the API's description, health, metrics, and the MCP endpoint's host."""

from loom.edges.http.app import Http, http_app
from loom.edges.http.hosts import Hosts
from loom.edges.http.lifecycle import Lifecycle
from loom.edges.http.logs import JsonLines, log_to_stderr
from loom.edges.http.metrics import Metrics
from loom.edges.http.serve import serve

__all__ = ["Hosts", "Http", "JsonLines", "Lifecycle", "Metrics", "http_app", "log_to_stderr", "serve"]
