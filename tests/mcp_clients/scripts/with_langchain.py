# pyright: basic, reportMissingImports=false
"""Sets a memory through LangChain's adapter, which opens a session for every call."""

import asyncio
import json
import sys

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient


async def main() -> None:
    client = MultiServerMCPClient({"loom": {"transport": "streamable_http", "url": sys.argv[1]}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    note = {"memory_key": "langchain", "value": "tea", "zebra": 1}
    done = await tools["loom_memory_set"].ainvoke(
        {"type": "tool_call", "id": "1", "name": "loom_memory_set", "args": note}
    )
    failed, error = False, ""
    try:
        answer = await tools["loom_memory_set"].ainvoke(
            {"type": "tool_call", "id": "2", "name": "loom_memory_set", "args": {"value": "tea"}}
        )
        failed, error = answer.status == "error", str(answer.content)
    except ToolException as problem:
        failed, error = True, str(problem)
    result = {
        "tools": list(tools),
        "answer": done.artifact["structured_content"],
        "failed": failed,
        "error": error,
    }
    print(json.dumps(result))  # noqa: T201  # read by the test


asyncio.run(main())
