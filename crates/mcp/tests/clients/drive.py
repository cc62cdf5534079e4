#!/usr/bin/env python3
"""Drives a server with the official Python SDK (mcp 2.x) and says what worked.

    drive.py --url http://127.0.0.1:8080/mcp
    drive.py --command carrel mcp --workspace .

Every check is made in the newest revision with a handshake and in the newest of all. The tools are those of
the fixture server unless others are named:

    --call TOOL JSON       a tool that answers at once
    --progress TOOL JSON   a tool that reports progress; "-" to leave the check out
    --cancel TOOL JSON     a tool that runs for a long time
    --cancelled TOOL       a tool that says how many calls were cancelled; "-" if there is none
    --token TOKEN          a bearer token for --url

Exits 0 only if every check passed.
"""

import argparse
import asyncio
import json
import sys
import time

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

MODES = ["legacy", "auto"]
PATIENCE = 20.0


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--command", nargs=argparse.REMAINDER)
    parser.add_argument("--token")
    parser.add_argument("--call", nargs=2, default=["echo", '{"text": "hello"}'])
    parser.add_argument("--progress", nargs=2, default=["progress", '{"steps": 3}'])
    parser.add_argument("--cancel", nargs=2, default=["wait", '{"millis": 60000}'])
    parser.add_argument("--cancelled", default="cancellations")
    arguments = parser.parse_args()
    if bool(arguments.url) == bool(arguments.command):
        parser.error("give either --url or --command")
    return arguments


def target(arguments):
    if arguments.command:
        return StdioServerParameters(command=arguments.command[0], args=arguments.command[1:])
    if arguments.token:
        import httpx2

        headers = {"Authorization": f"Bearer {arguments.token}"}
        client = httpx2.AsyncClient(headers=headers, timeout=PATIENCE)
        return streamable_http_client(arguments.url, http_client=client)
    return arguments.url


def text(result):
    return "".join(block.text for block in result.content if block.type == "text")


async def lists_tools(client, arguments):
    tools = {tool.name for tool in (await client.list_tools()).tools}
    assert arguments.call[0] in tools, f"{arguments.call[0]} is not among {sorted(tools)}"
    return f"{len(tools)} tools"


async def calls_a_tool(client, arguments):
    name, given = arguments.call
    result = await client.call_tool(name, json.loads(given))
    assert not result.is_error, text(result)
    return text(result)[:60]


async def reports_progress(client, arguments):
    name, given = arguments.progress
    if name == "-":
        return "left out"
    seen = []

    async def note(progress, total, message):
        seen.append(progress)

    await client.call_tool(name, json.loads(given), progress_callback=note)
    await anyio.sleep(0.1)
    assert seen, "no progress was reported"
    assert seen == sorted(seen), f"progress went backwards: {seen}"
    return f"{len(seen)} notifications"


async def count_cancelled(client, arguments):
    if arguments.cancelled == "-":
        return None
    return int(text(await client.call_tool(arguments.cancelled, {})))


async def cancels_a_call(client, arguments):
    name, given = arguments.cancel
    before = await count_cancelled(client, arguments)
    with anyio.move_on_after(0.5) as scope:
        await client.call_tool(name, json.loads(given))
    assert scope.cancelled_caught, f"{name} ended before it was cancelled"
    if before is None:
        return "not verified: the server cannot tell"
    with anyio.fail_after(PATIENCE):
        while await count_cancelled(client, arguments) == before:
            await anyio.sleep(0.05)
    return "the call was cancelled"


CHECKS = [lists_tools, calls_a_tool, reports_progress, cancels_a_call, calls_a_tool]


async def drive(mode, arguments):
    failures = 0
    began = time.monotonic()
    async with Client(target(arguments), mode=mode, read_timeout_seconds=PATIENCE) as client:
        print(f"{mode}: speaks {client.protocol_version} with {client.server_info and client.server_info.name}")
        for check in CHECKS:
            title = check.__name__.replace("_", " ")
            try:
                with anyio.fail_after(PATIENCE):
                    print(f"  ok    {title}: {await check(client, arguments)}")
            except Exception as error:  # every kind of failure is one to report
                failures += 1
                print(f"  FAIL  {title}: {error!r}")
        ended = time.monotonic()
    print(f"  ended {time.monotonic() - ended:.2f} s after the client closed, {ended - began:.2f} s in all")
    return failures


async def main():
    arguments = parse()
    failures = 0
    for mode in MODES:
        failures += await drive(mode, arguments)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
