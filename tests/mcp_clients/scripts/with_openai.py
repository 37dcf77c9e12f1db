# pyright: basic, reportMissingImports=false
"""Sets a memory through the OpenAI agents library, which also tightens the tools' schemas."""

import asyncio
import json
import sys

from agents.mcp import MCPServerStreamableHttp, MCPUtil


async def main() -> None:
    async with MCPServerStreamableHttp(params={"url": sys.argv[1]}, use_structured_content=True, name="loom") as server:
        tools = await server.list_tools()
        done = await server.call_tool("loom_memory_set", {"memory_key": "openai", "value": "tea", "zebra": 1})
        failed = await server.call_tool("loom_memory_set", {"memory_key": 7, "value": "tea"})
        tightened = [MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True) for tool in tools]
        every = next(tool for tool in tightened if tool.name == "loom_memory_set")
        fields = next(tool for tool in tools if tool.name == "loom_memory_set").input_schema["properties"]
        # A strict schema requires each field, so a model sends each one's default.
        defaults = {name: fields[name].get("default", "-") for name in every.params_json_schema["required"]}
        defaults |= {"memory_key": "openai-strict", "value": "tea"}
        strict = await server.call_tool("loom_memory_set", defaults)
    result = {
        "tools": [tool.name for tool in tools],
        "answer": done.structured_content,
        "failed": failed.is_error,
        "error": failed.content[0].text,
        "strict_failed": strict.is_error,
        "strict_text": strict.content[0].text,
    }
    print(json.dumps(result))  # noqa: T201  # read by the test


asyncio.run(main())
