# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Sets a memory over standard input and output: `with_stdio.py ERA COMMAND...`."""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ))
    codex = types.Implementation(name="codex-mcp-client", version="1")
    async with Client(server, mode=sys.argv[1], client_info=codex) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        done = await client.call_tool("loom_memory_set", {"memory_key": "stdio", "value": "tea", "zebra": 1})
        failed = await client.call_tool("loom_memory_set", {"value": "tea"})
    result = {
        "tools": tools,
        "answer": done.structured_content,
        "failed": failed.is_error,
        "error": failed.content[0].text,
    }
    print(json.dumps(result))  # noqa: T201  # read by the test


asyncio.run(main())
