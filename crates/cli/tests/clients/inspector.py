"""The Inspector's command line drives `carrel mcp`: every call is a client of its own."""

import json
import pathlib
import subprocess

import lab

LAUNCHER = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

# What the Inspector ends with when a tool said that it failed.
TOOL_ERROR = 5


class Inspector:
    """Runs the Inspector against one server."""

    def __init__(self, place, cache, target, era):
        cache = pathlib.Path(cache)
        self.place, self.target = place, target
        if target[0].startswith("http://"):
            self.target = [*target, "--header", f"Authorization: {lab.AUTHORIZATION}"]
        self.node = cache / "node_modules/node/bin/node"
        self.common = ["--format", "json", "--protocol-era", era]
        self.launcher = cache / LAUNCHER

    def run(self, *words):
        command = [self.node, self.launcher, "--cli", *self.common, *words, *self.target]
        # It keeps files at home; the server's home is the usual one.
        environment = {**self.place.environment, "HOME": str(self.place.base / "inspector")}
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=lab.PATIENCE,
        )
        return done

    def request(self, method, *words):
        done = self.run("--method", method, *words)
        said = f"{done.stdout}{done.stderr}"
        lab.expect(done.returncode == 0, f"{method} ended with {done.returncode}: {said}")
        return json.loads(done.stdout)

    def call(self, tool, /, **arguments):
        words = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return self.request("tools/call", *words)

    def refused(self, tool, /, **arguments):
        words = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        done = self.run("--method", "tools/call", *words)
        lab.expect(done.returncode == TOOL_ERROR, f"{done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout


def text_of(answer):
    return "".join(block["text"] for block in answer["result"]["content"])


def common(report, inspector, title, root):
    """What holds in every revision and over every transport."""
    with report.check(title, "initialize names server and workspace") as seen:
        answer = inspector.request("initialize")
        answer = answer.get("result", answer)
        lab.expect(answer["serverInfo"]["name"] == "carrel", answer)
        lab.expect(str(root) in answer["instructions"], answer)
        seen.append(answer["protocolVersion"])
    with report.check(title, "tools/list --strict finds no schema that a provider would refuse") as seen:
        done = inspector.run("--method", "tools/list", "--strict")
        lab.expect(done.returncode == 0, done.stderr)
        doubts = [line for line in done.stderr.splitlines() if line.startswith("  Path: inputSchema")]
        lab.expect(not doubts, doubts)
        seen.append(f"{len(json.loads(done.stdout)['result']['tools'])} tools")
    with report.check(title, "Read") as seen:
        answer = inspector.call("Read", file_path="src/lib.rs")
        lab.expect("1\t/// Adds what was paid." in text_of(answer), answer)
        seen.append(answer["result"]["structuredContent"])
    with report.check(title, "an error of a tool is one, with its code") as seen:
        refusal = inspector.refused("Read", file_path="no/such/file")
        lab.expect("E_NOT_FOUND" in refusal, refusal)
        seen.append(refusal)


def work(report, inspector, title, place, root, edits):
    """Changes the project, tests it and commits."""
    with report.check(title, "Grep finds"):
        answer = inspector.call("Grep", pattern="amount - 1", output_mode="content")
        lab.expect("src/lib.rs" in text_of(answer), answer)
    with report.check(title, "run_tests tells of the failure") as seen:
        answer = inspector.call("run_tests")
        lab.expect(answer["result"]["structuredContent"]["verdict"] == "failed", answer)
        seen.append(text_of(answer))
    old, new = lab.CARGO_BUG
    edit = {"file_path": "src/lib.rs", "old_string": old, "new_string": new}
    if edits:
        with report.check(title, "Edit changes the version that an earlier call has read, by its hash"):
            lab.expect("E_NOT_READ" in inspector.refused("Edit", **edit), "it was not refused")
            read = inspector.call("Read", file_path="src/lib.rs")
            known = read["result"]["structuredContent"]["hash"]
            inspector.call("Edit", **edit, expected_hash=known)
    else:
        with report.check(title, "Edit refuses a file that this client did not read; Bash mends it"):
            lab.expect("E_NOT_READ" in inspector.refused("Edit", **edit), "it was not refused")
            answer = inspector.call("Bash", command=f"sed -i 's/{old}/{new}/' src/lib.rs")
            lab.expect(answer["result"]["structuredContent"]["exit_code"] == 0, answer)
    with report.check(title, "Write makes a file"):
        inspector.call("Write", file_path="NOTES.md", content="Mended.\n")
        lab.expect((root / "NOTES.md").read_text() == "Mended.\n", "it is not there")
    with report.check(title, "run_tests passes") as seen:
        answer = inspector.call("run_tests")
        lab.expect(answer["result"]["structuredContent"]["verdict"] == "passed", answer)
        seen.append(text_of(answer))
    with report.check(title, "git commits") as seen:
        inspector.call("git", operation="add", args="--all")
        inspector.call("git", operation="commit", args="-m 'Mend the total'")
        log = place.git(root, "log", "--format=%s").splitlines()
        lab.expect(log == ["Mend the total", "Begin"], log)
        seen.append(log[0])


def drive(report, place, cache):
    print(f"\nInspector {lab.installed(cache, '@modelcontextprotocol/inspector')}", flush=True)
    for era in ("legacy", "modern"):
        title = f"inspector stdio {era}"
        root = place.project("ledger", lab.CARGO)
        kept = [f"{name}={place.environment[name]}" for name in ("HOME", "XDG_STATE_HOME")]
        target = ["-e", kept[0], "-e", kept[1], place.carrel, "mcp", "--workspace", str(root)]
        # In the older revisions it declares roots, and lists none.
        ignored = ["--ignore-roots"] if era == "legacy" else []
        if ignored:
            with report.check(title, "roots that it declares and does not list leave it nothing") as seen:
                refusal = Inspector(place, cache, target, era).refused("Read", file_path="src/lib.rs")
                lab.expect("E_CLIENT_ROOTS" in refusal and "lists none" in refusal, refusal)
                seen.append(refusal)
        inspector = Inspector(place, cache, [*target, *ignored], era)
        common(report, inspector, title, root)
        if era == "legacy":
            work(report, inspector, title, place, root, edits=False)
        title = f"inspector http {era}"
        root = place.project("ledger", lab.CARGO)
        with report.check(title, "the server ends when it is told to"):
            with place.http(["--workspace", str(root), *ignored]) as url:
                inspector = Inspector(place, cache, [url], era)
                common(report, inspector, title, root)
                # The newer revision has no sessions: a call says which version it knows.
                if era == "modern":
                    work(report, inspector, title, place, root, edits=True)
