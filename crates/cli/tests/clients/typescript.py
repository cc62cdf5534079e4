"""The TypeScript SDK of the 1.x line drives `carrel mcp`."""

import contextlib
import json
import pathlib
import subprocess

import anyio

import lab
import python_sdk

SDK = "@modelcontextprotocol/sdk"


def run(place, cache, target, job=""):
    cache = pathlib.Path(cache).absolute()
    script = pathlib.Path(__file__).with_name("typescript.mjs")
    command = [cache / "node_modules/node/bin/node", script, cache / "node_modules" / SDK, job, *target]
    return subprocess.run(
        command,
        env={**place.environment, "CARREL_AUTHORIZATION": lab.AUTHORIZATION},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=lab.PATIENCE,
    )


def session(report, place, cache, title, root, target):
    done = run(place, cache, target)
    with report.check(title, "it lists, reads, edits, and hears of progress") as seen:
        lab.expect(done.returncode == 0, done.stderr)
        saw = json.loads(done.stdout)
        lab.expect("1\texports.total" in saw["read"]["content"][0]["text"], saw["read"])
        lab.expect("size" in (root / "basket.js").read_text(), saw["edit"])
        lab.expect("over" in saw["long"]["content"][0]["text"], saw["long"])
        lab.expect(saw["progress"], "no progress")
        seen.append(f"{len(saw['tools'])} tools")
    if done.returncode != 0:
        return
    with report.check(title, "an error fits the schema of its tool, and can be read") as seen:
        lab.expect(saw["missing"]["isError"], saw["missing"])
        seen.append(saw["missing"]["structuredContent"])
    with report.check(title, "it finds nothing in the schemas to warn about"):
        lab.expect("ignored in schema" not in done.stderr, done.stderr)


def drive(report, place, cache):
    print(f"\nTypeScript SDK {lab.installed(cache, SDK)}", flush=True)
    root = place.project("basket", lab.NODE)
    target = [place.carrel, "mcp", "--workspace", root, "--definitions", "full"]
    session(report, place, cache, "typescript stdio", root, target)
    root = place.project("basket", lab.NODE)
    with report.check("typescript http", "the server ends when it is told to"):
        with place.http(["--workspace", str(root), "--definitions", "full"]) as url:
            session(report, place, cache, "typescript http", root, [url])
    for transport in ("stdio", "http"):
        for mode in python_sdk.MODES:
            anyio.run(two_clients, report, place, cache, transport, mode)


async def two_clients(report, place, cache, transport, mode):
    """The Python SDK and the TypeScript SDK at once: at one server over HTTP, at one each over stdin."""
    title = f"typescript and python {transport} {python_sdk.MODES[mode]}"
    root = place.project("basket", lab.NODE)
    arguments = ["--workspace", str(root)]
    with report.check(title, "neither edits what the other has read, nor reads or kills its jobs") as seen:
        async with contextlib.AsyncExitStack() as stack:
            if transport == "http":
                url = stack.enter_context(place.http(arguments))
                target, opened = [url], python_sdk.reached(url, mode)
            else:
                target = [place.carrel, "mcp", *arguments]
                opened = python_sdk.connected(place, transport, mode, arguments)
            client = await stack.enter_async_context(opened)
            victim = python_sdk.Driver(client, (await client.list_tools()).tools)
            await victim.call("Read", file_path="basket.js")
            job, _ = await victim.call("Bash", command="sleep 300", run_in_background=True)
            done = await anyio.to_thread.run_sync(run, place, cache, target, "job_1")
            lab.expect(done.returncode == 0, done.stderr)
            codes = [one["structuredContent"]["error"]["code"] for one in json.loads(done.stdout).values()]
            lab.expect(codes == ["E_NOT_READ", "E_JOB_NOT_FOUND", "E_JOB_NOT_FOUND"], codes)
            lab.expect("stolen" not in (root / "basket.js").read_text(), "it was changed")
            await victim.call("KillShell", shell_id=job["shell_id"])
            seen.append(", ".join(codes))
