"""The faces of Loom: HTTP, MCP and the command line. Each is made from the registry of operations."""
