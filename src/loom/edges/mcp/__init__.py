"""The MCP face: the registry's operations as tools, for both eras of the protocol."""

from loom.edges.mcp.endpoint import McpEndpoint
from loom.edges.mcp.server import Tools, mcp_server

__all__ = ["McpEndpoint", "Tools", "mcp_server"]
