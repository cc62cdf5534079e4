"""A real agent works with `carrel mcp`: the Codex CLI, with a model on loopback that knows what to say."""

import json
import os
import pathlib
import subprocess

import lab
import provider
import snippets

CODEX = "node_modules/@openai/codex/bin/codex.js"

# Under which the agent shows the tools of the server to its model.
NAMESPACE = "mcp__carrel"

PROMPT = "Mend basket.js until its tests pass, then commit."

CONFIGURATION = """model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false
web_search = "disabled"

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = {url}
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

{server}
"""

HALF = "prices.length ? prices[0] : 0"
WHOLE = "prices.reduce((sum, one) => sum + one, 0)"

# What the model asks for, and what the agent must then hear from Carrel.
SCRIPT = [
    ("run_tests", {}, ["failed", "adds every price"]),
    ("Edit", {"file_path": "basket.js", "old_string": "prices.length", "new_string": HALF}, ["basket.js", "Read"]),
    ("Read", {"file_path": "basket.js"}, ["1\texports.total = (prices) => prices.length;"]),
    ("Edit", {"file_path": "basket.js", "old_string": "prices.length", "new_string": HALF}, ["replaced 1 occurrence(s)"]),
    ("run_tests", {}, ["failed", "adds every price"]),
    ("Edit", {"file_path": "basket.js", "old_string": HALF, "new_string": WHOLE}, ["replaced 1 occurrence(s)"]),
    ("run_tests", {}, ["passed"]),
    ("Bash", {"command": "cat /etc/shadow; pwd"}, ["cat: /etc/shadow: No such file or directory"]),
    ("git", {"operation": "add", "args": ["basket.js"]}, []),
    ("git", {"operation": "commit", "args": ["-m", "Add up the prices"]}, ["Add up the prices"]),
    ("git", {"operation": "log", "args": ["--oneline"]}, ["Add up the prices"]),
]


def replies():
    calls = [
        provider.call(number, NAMESPACE, tool, arguments)
        for number, (tool, arguments, _) in enumerate(SCRIPT)
    ]
    return [*calls, provider.message("The tests pass and the change is committed.")]


def agent(place, cache, root, model, server):
    """Runs the agent; returns the events that it printed."""
    home = place.directory("codex-home")
    text = CONFIGURATION.format(url=json.dumps(model.url), server=server)
    (home / "config.toml").write_text(text)
    cache = pathlib.Path(cache).absolute()
    # What it was given, and nothing of the machine: no key, no proxy, no configuration of anybody.
    environment = {
        "PATH": f"{place.on_path()}:{os.environ['PATH']}",
        "HOME": str(home),
        "CODEX_HOME": str(home),
        "NO_PROXY": "127.0.0.1",
    }
    command = [
        cache / "node_modules/node/bin/node",
        cache / CODEX,
        "exec",
        "--json",
        "--strict-config",
        "--cd",
        root,
        PROMPT,
    ]
    done = subprocess.run(
        command,
        env=environment,
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * lab.PATIENCE,
    )
    lab.expect(done.returncode == 0, f"codex ended with {done.returncode}: {done.stderr} {done.stdout}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def heard(model):
    """Returns what the agent told its model about each call."""
    items = model.requests[-1]["input"]
    outputs = [item for item in items if item["type"] == "function_call_output"]
    return [one["output"] if isinstance(one["output"], str) else json.dumps(one["output"]) for one in outputs]


def offered(model):
    """Returns the tools that the agent showed to its model."""
    for tool in model.requests[0]["tools"]:
        if tool.get("name") == NAMESPACE:
            return {one["name"]: one for one in tool["tools"]}, tool["description"]
    names = [tool.get("name") for tool in model.requests[0]["tools"]]
    raise lab.Failed(f"the agent has no tools of Carrel: {names}")


def session(report, place, cache, title, root, server):
    with provider.Provider(replies()) as model:
        with report.check(title, "the agent works through its script") as seen:
            events = agent(place, cache, root, model, server)
            lab.expect(len(model.requests) == len(SCRIPT) + 1, f"{len(model.requests)} requests")
            lab.expect(not model.others, model.others)
            seen.append(f"{len(model.requests)} requests to the model, and none of another kind")
        if not model.requests:
            return
    with report.check(title, "its model is shown the tools, the workspace and the rules") as seen:
        tools, instructions = offered(model)
        lab.expect(str(root) in instructions, instructions)
        for tool, _, _ in SCRIPT:
            lab.expect(tool in tools, f"{tool} is not among {sorted(tools)}")
        seen.append(f"{len(tools)} tools")
    outputs = heard(model)
    for (tool, arguments, words), output in zip(SCRIPT, outputs, strict=True):
        about = arguments.get("operation") or arguments.get("file_path") or arguments.get("command") or ""
        with report.check(title, f"{tool} {about}".strip()) as seen:
            for word in words:
                lab.expect(json.dumps(word)[1:-1] in output or word in output, f"no {word!r} in {output}")
            seen.append(output)
    with report.check(title, "its transcript has every call") as seen:
        ended = [event["item"] for event in events if event["type"] == "item.completed"]
        calls = [item for item in ended if item["type"] == "mcp_tool_call"]
        named = [(item["server"], item["tool"]) for item in calls]
        lab.expect(named == [("carrel", tool) for tool, _, _ in SCRIPT], named)
        said = [item["text"] for item in ended if item["type"] == "agent_message"]
        lab.expect(said == ["The tests pass and the change is committed."], said)
        seen.append(", ".join(f"{item['tool']} {item['status']}" for item in calls))
    with report.check(title, "the repository has the change, committed, and its tests pass") as seen:
        lab.expect(WHOLE in (root / "basket.js").read_text(), (root / "basket.js").read_text())
        log = place.git(root, "log", "--format=%an <%ae>: %s")
        expected = ["Ann <ann@example.org>: Add up the prices", "Ann <ann@example.org>: Begin"]
        lab.expect(log.splitlines() == expected, log)
        lab.expect(place.git(root, "status", "--porcelain") == "", place.git(root, "status"))
        lab.expect(place.git(root, "show", "--format=", "--name-only").split() == ["basket.js"], "other files")
        tested = subprocess.run(["node", "--test"], cwd=root, capture_output=True, text=True)
        lab.expect(tested.returncode == 0, tested.stdout)
        seen.append(log.splitlines()[0])


def drive(report, place, cache):
    print(f"\nCodex CLI {lab.installed(cache, '@openai/codex')}", flush=True)
    root = place.project("basket", lab.NODE)
    session(report, place, cache, "codex stdio", root, snippets.snippet("Codex", root))
    root = place.project("basket", lab.NODE)
    with report.check("codex http", "the server ends when it is told to"):
        with place.http(["--workspace", str(root)]) as url:
            server = "\n".join(
                [
                    "[mcp_servers.carrel]",
                    f"url = {json.dumps(url)}",
                    f"http_headers = {{ Authorization = {json.dumps(lab.AUTHORIZATION)} }}",
                    'default_tools_approval_mode = "approve"',
                    "required = true",
                ]
            )
            session(report, place, cache, "codex http", root, server)
