# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Sets a memory with the protocol's own library, in the era named by the second argument."""

import asyncio
import json
import sys

from mcp import Client


async def main() -> None:
    async with Client(sys.argv[1], mode=sys.argv[2]) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        done = await client.call_tool("loom_memory_set", {"memory_key": "mcp", "value": "tea", "zebra": 1})
        failed = await client.call_tool("loom_memory_set", {"value": "tea"})
    result = {
        "tools": tools,
        "answer": done.structured_content,
        "failed": failed.is_error,
        "error": failed.content[0].text,
    }
    print(json.dumps(result))  # noqa: T201  # read by the test


asyncio.run(main())
