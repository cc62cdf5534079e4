"""The TypeScript SDK of the 1.x line drives `carrel mcp`."""

import json
import pathlib
import subprocess

import lab

SDK = "@modelcontextprotocol/sdk"


def session(report, place, cache, title, root, target):
    cache = pathlib.Path(cache).absolute()
    script = pathlib.Path(__file__).with_name("typescript.mjs")
    command = [cache / "node_modules/node/bin/node", script, cache / "node_modules" / SDK, root, *target]
    done = subprocess.run(
        command,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=lab.PATIENCE,
    )
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
    target = [place.carrel, "mcp", "--workspace", root]
    session(report, place, cache, "typescript stdio", root, target)
    root = place.project("basket", lab.NODE)
    with report.check("typescript http", "the server ends when it is told to"):
        with place.http(["--workspace", str(root)]) as url:
            session(report, place, cache, "typescript http", root, [url])
