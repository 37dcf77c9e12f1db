# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Lets a Pydantic AI agent with a scripted model set a memory."""

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

CALLS = ({"memory_key": "pydantic", "value": "tea", "zebra": 1}, {"value": "tea"})
seen: dict[str, list[str]] = {}


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Call the tool with each of CALLS in turn, then say what came back."""
    seen["tools"] = [tool.name for tool in info.function_tools]
    answers = [
        part for message in messages for part in message.parts if part.part_kind in ("tool-return", "retry-prompt")
    ]
    if len(answers) < len(CALLS):
        return ModelResponse(parts=[ToolCallPart("loom_memory_set", CALLS[len(answers)])])
    return ModelResponse(parts=[TextPart(json.dumps([part.content for part in answers]))])


async def main() -> None:
    async with Agent(FunctionModel(scripted), toolsets=[MCPToolset(sys.argv[1])]) as agent:
        said = await agent.run("keep it")
    answer, error = json.loads(said.output)
    result = {"tools": seen["tools"], "answer": answer, "failed": "code" in str(error), "error": str(error)}
    print(json.dumps(result))  # noqa: T201  # read by the test


asyncio.run(main())
