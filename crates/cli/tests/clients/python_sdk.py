"""The official Python SDK drives `carrel mcp` in both revisions, over stdin and over HTTP."""

import contextlib
import re
import time
import uuid

import anyio
import jsonschema
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

import lab

# Every tool, with all that a definition can say.
EVERYTHING = ["--tools", "default,secrets", "--definitions", "full"]

# The revision with a handshake, and the one without.
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28"}

SECRET = "not-to-be-seen-by-commands"

PATCH = """--- a/plan.txt
+++ b/plan.txt
@@ -1,2 +1,2 @@
 first
-last
+second
"""


def text_of(result):
    return "".join(block.text for block in result.content if block.type == "text")


class Driver:
    """Calls tools, and holds every answer against what its tool advertised."""

    def __init__(self, client, tools, handle=None):
        self.client = client
        self.tools = {tool.name: tool for tool in tools}
        self.called = set()
        # Over HTTP the revision without sessions remembers nothing unless the client names a session.
        self.meta = {"dev.carrel/session": handle} if handle else None

    async def call(self, tool, /, **arguments):
        result = await self.answer(tool, arguments)
        lab.expect(not result.is_error, f"{tool} failed: {text_of(result)}")
        return result.structured_content, text_of(result)

    async def refused(self, tool, code, /, **arguments):
        result = await self.answer(tool, arguments)
        lab.expect(result.is_error, f"{tool} was not refused: {text_of(result)}")
        error = result.structured_content["error"]
        lab.expect(error["code"] == code, f"{tool}: {error}")
        return text_of(result)

    async def answer(self, tool, arguments):
        self.called.add(tool)
        # The SDK itself refuses facts that do not fit, but only those of a success.
        result = await self.client.call_tool(tool, arguments, meta=self.meta)
        schema = self.tools[tool].output_schema
        if schema is None:
            return result
        try:
            jsonschema.Draft202012Validator(schema).validate(result.structured_content)
        except jsonschema.ValidationError as error:
            kind = "error" if result.is_error else "answer"
            raise lab.Failed(f"an {kind} of {tool} does not fit its schema: {error.message}") from error
        return result


@contextlib.asynccontextmanager
async def reached(url, mode):
    """Opens a client of a server over HTTP."""
    async with create_mcp_http_client(headers={"Authorization": lab.AUTHORIZATION}) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=lab.PATIENCE) as client:
            yield client


@contextlib.asynccontextmanager
async def connected(place, transport, mode, arguments):
    """Opens a client; over stdin, the server's words to people come with it."""
    environment = {"CARREL_SECRET_DEMO": SECRET}
    if transport == "http":
        with place.http(arguments, environment) as url:
            async with reached(url, mode) as client:
                yield client
        return
    parameters = StdioServerParameters(
        command=place.carrel,
        args=["mcp", *arguments],
        env={**place.environment, **environment},
        cwd=place.base,
    )
    with open(place.base / f"stdio-{time.monotonic_ns()}.log", "w") as log:
        transport = stdio_client(parameters, errlog=log)
        async with Client(transport, mode=mode, read_timeout_seconds=lab.PATIENCE) as client:
            yield client
            began = time.monotonic()
    # The SDK waits two seconds before it sends a signal.
    took = time.monotonic() - began
    lab.expect(took < 1.5, f"the server did not end when its stdin was closed ({took:.1f} s)")


def valid(tool):
    """Holds the definition of a tool against what clients ask of one."""
    lab.expect(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tool.name), f"{tool.name} is no name")
    lab.expect(tool.title and len(tool.description) > 20, f"{tool.name} is not described")
    lab.expect(tool.annotations is not None, f"{tool.name} has no annotations")
    for schema in (tool.input_schema, tool.output_schema):
        lab.expect(schema and schema.get("type") == "object", f"{tool.name}: no object: {schema}")
        jsonschema.Draft202012Validator.check_schema(schema)
        lab.expect("$ref" not in str(schema), f"{tool.name} refers to something")
    lab.expect("workspace" in tool.input_schema["properties"], f"{tool.name} takes no workspace")


async def files(driver, root, file):
    """Reads, searches, writes and changes files."""
    facts, text = await driver.call("Read", file_path=file)
    lab.expect("total" in text and facts["total_lines"] > 0, text)
    _, text = await driver.call("Grep", pattern="total", output_mode="content")
    lab.expect(file in text, text)
    _, text = await driver.call("Glob", pattern="**/*")
    lab.expect(file in text, text)
    _, text = await driver.call("LS", path=".")
    lab.expect(file.split("/")[0] in text, text)
    await driver.call("Write", file_path="notes.txt", content="one\ntwo\n")
    await driver.call("Edit", file_path="notes.txt", old_string="one", new_string="first")
    edits = [{"old_string": "two", "new_string": "last"}]
    await driver.call("MultiEdit", file_path="notes.txt", edits=edits)
    await driver.call("Move", source="notes.txt", destination="plan.txt")
    await driver.call("ApplyPatch", patch=PATCH)
    lab.expect((root / "plan.txt").read_text() == "first\nsecond\n", "the changes are not there")
    await driver.call("Delete", path="plan.txt")
    lab.expect(not (root / "plan.txt").exists(), "the file is still there")


async def symbols(driver, root, file):
    """Finds, reads and renames a symbol; without a language server the answers come from syntax, or say so."""
    _, text = await driver.call("outline", path=file)
    lab.expect("total" in text, text)
    _, text = await driver.call("read_symbol", symbol="total", file_path=file)
    lab.expect("total" in text, text)
    _, text = await driver.call("find_references", symbol="total", by_name=True)
    lab.expect(file in text, text)
    before = (root / file).read_text()
    rename = {"symbol": "total", "new_name": "sum_of", "dry_run": True}
    result = await driver.answer("rename_symbol", rename)
    lab.expect((root / file).read_text() == before, "a dry run has changed the file")
    if result.is_error:
        return f"rename_symbol: {result.structured_content['error']['code']}"
    lab.expect("sum_of" in text_of(result), text_of(result))
    return text_of(result)


async def undone(driver, root):
    """Takes two changes back, the last one first."""
    path = root / "undo.txt"
    await driver.call("Write", file_path="undo.txt", content="one\n")
    await driver.call("Edit", file_path="undo.txt", old_string="one", new_string="two")
    lab.expect(path.read_text() == "two\n", "it was not changed")
    await driver.call("undo")
    lab.expect(path.read_text() == "one\n", "the edit was not taken back")
    await driver.call("undo")
    lab.expect(not path.exists(), "the file was not taken back")


async def shell(driver):
    """Runs commands in the foreground and in the background."""
    facts, text = await driver.call("Bash", command="echo out; echo err >&2; exit 3")
    lab.expect(facts["exit_code"] == 3 and "exit: 3" in text, text)
    _, text = await driver.call("shell_run", cmd="echo", args=["a  b"])
    lab.expect("a  b" in text, text)
    facts, _ = await driver.call("Bash", command="echo begun; sleep 300", run_in_background=True)
    shell_id = facts["shell_id"]
    _, text = await driver.call("BashOutput", shell_id=shell_id, wait_seconds=5)
    lab.expect("begun" in text, text)
    await driver.call("KillShell", shell_id=shell_id)
    facts, _ = await driver.call("watch_process", command="echo error: bad; sleep 300")
    shell_id = facts["shell_id"]
    await driver.call("watch_process_events", shell_id=shell_id)
    await driver.call("KillShell", shell_id=shell_id)
    _, text = await driver.call("secrets_available")
    lab.expect("demo" in text.lower(), text)
    _, text = await driver.call("secret", name="DEMO")
    lab.expect(SECRET in text, "the secret was not handed out")
    _, text = await driver.call("Bash", command=f"env; echo {SECRET}")
    lab.expect(SECRET not in text, f"the secret is in the output: {text}")


async def mended(driver, file, bug):
    """Sees tests fail, mends the code, and sees them pass."""
    facts, text = await driver.call("run_tests")
    lab.expect(facts["verdict"] == "failed", f"{facts} {text}")
    await driver.call("last_test_failures")
    await driver.call("run_failing_tests")
    await driver.call("Read", file_path=file)
    await driver.call("Edit", file_path=file, old_string=bug[0], new_string=bug[1])
    facts, text = await driver.call("run_tests")
    lab.expect(facts["verdict"] == "passed", f"{facts} {text}")
    return text


async def checked(driver, node):
    """Looks at the project with the other tools. The one of Node has no linter, and says so."""
    await driver.call("profile")
    await driver.call("workspaces")
    # Done, refused for want of a network, or nothing to do.
    await driver.answer("install", {})
    if node:
        _, text = await driver.call("run_script", name="hello")
        lab.expect("hello" in text, text)
        await driver.refused("run_lint", "E_PROJECT_NOT_DETECTED")
        await driver.refused("run_typecheck", "E_PROJECT_NOT_DETECTED")
        await driver.refused("format", "E_PROJECT_NOT_DETECTED")
        return
    await driver.refused("run_script", "E_SCRIPT_NOT_FOUND", name="hello")
    await driver.call("format", check=True)
    for tool in ("run_lint", "run_typecheck"):
        facts, text = await driver.call(tool)
        lab.expect(facts["verdict"] == "passed", f"{tool}: {facts} {text}")


async def committed(place, driver, root):
    """Commits what was changed."""
    await driver.call("git", operation="status")
    await driver.call("git", operation="add", args=["--all"])
    await driver.call("git", operation="commit", args=["-m", "Add all of it"])
    log = place.git(root, "log", "--format=%an: %s")
    lab.expect(log.splitlines()[0] == "Ann: Add all of it", log)
    if "git_inspect" in driver.tools:
        await driver.call("git_inspect", operation="log")
    return log.splitlines()[0]


async def errors(driver, file):
    """Gets errors that say what was wrong."""
    await driver.refused("Read", "E_NOT_FOUND", file_path="no/such/file")
    await driver.refused("Read", "E_INVALID_ARGUMENTS", file_pth=file)
    await driver.refused("Read", "E_SANDBOX_VIOLATION", file_path="../../etc/passwd")
    await driver.call("Bash", command=f"echo >> {file}")
    text = await driver.refused("Edit", "E_CHANGED_SINCE_READ", file_path=file, old_string="a", new_string="b")
    try:
        await driver.client.call_tool("Reed", {})
    except MCPError as error:
        lab.expect("did you mean `Read`" in str(error), str(error))
    else:
        raise lab.Failed("a tool that is not there was called")
    return text


async def progress(driver):
    """Hears from a long command while it runs."""
    heard = []

    async def hear(done, total, message):
        heard.append((done, message))

    call = {"command": "sleep 2.5; echo over"}
    result = await driver.client.call_tool("Bash", call, progress_callback=hear, meta=driver.meta)
    lab.expect("over" in text_of(result), text_of(result))
    done = [done for done, _ in heard]
    lab.expect(len(heard) >= 2, f"heard {heard}")
    lab.expect(all(one < next for one, next in zip(done, done[1:])), f"heard {heard}")
    return f"{len(heard)} notifications, the last: {heard[-1][1]}"


async def cancelled(driver):
    """Gives up a call; its command is gone from the machine."""
    # Nobody else sleeps for exactly so long.
    nap = f"300.{uuid.uuid4().int % 10**9:09}"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(driver.client.call_tool, "Bash", {"command": f"sleep {nap} & sleep {nap}"})
        until = time.monotonic() + lab.PATIENCE
        while not lab.runs(nap):
            lab.expect(time.monotonic() < until, "the command did not start")
            await anyio.sleep(0.02)
        began = time.monotonic()
        tasks.cancel_scope.cancel()
    while lab.runs(nap):
        lab.expect(time.monotonic() < began + lab.PATIENCE, "the command still runs")
        await anyio.sleep(0.01)
    took = time.monotonic() - began
    await driver.call("Read", file_path=".gitignore")
    return f"gone after {took * 1000:.0f} ms"


async def one_workspace(report, place, transport, mode, files_of, file, bug):
    title = f"python {transport} {MODES[mode]}"
    root = place.project("project", {".gitignore": "", **files_of})
    with report.check(title, "the server ends when the client does"):
        async with connected(place, transport, mode, ["--workspace", str(root), *EVERYTHING]) as client:
            with report.check(title, "the handshake names revision, server and workspace") as seen:
                lab.expect(client.protocol_version == MODES[mode], client.protocol_version)
                lab.expect(client.server_info.name == "carrel", client.server_info)
                lab.expect(str(root) in client.instructions, client.instructions)
                seen.append(f"{client.server_info.name} {client.server_info.version}")
            tools = (await client.list_tools()).tools
            driver = Driver(client, tools, handle="one" if transport == "http" else None)
            with report.check(title, "every schema is one of draft 2020-12") as seen:
                for tool in tools:
                    valid(tool)
                seen.append(f"{len(tools)} tools: {' '.join(tool.name for tool in tools)}")
            with report.check(title, "files are read, searched, written, edited, moved, deleted"):
                await files(driver, root, file)
            with report.check(title, "symbols are listed, read, found and renamed") as seen:
                seen.append(await symbols(driver, root, file))
            with report.check(title, "undo takes changes back, one call after the other"):
                await undone(driver, root)
            with report.check(title, "commands run, also in the background"):
                await shell(driver)
            with report.check(title, "tests fail, and pass after an edit") as seen:
                seen.append(await mended(driver, file, bug))
            with report.check(title, "the other verify tools answer"):
                await checked(driver, "package.json" in files_of)
            with report.check(title, "git commits") as seen:
                seen.append(await committed(place, driver, root))
            with report.check(title, "errors have a code and say what was wrong") as seen:
                seen.append(await errors(driver, file))
            with report.check(title, "a long command reports progress") as seen:
                seen.append(await progress(driver))
            with report.check(title, "a cancelled command is killed") as seen:
                seen.append(await cancelled(driver))
            with report.check(title, "every tool was called, every answer fits its schema") as seen:
                missing = set(driver.tools) - driver.called
                lab.expect(not missing, f"not called: {missing}")
                seen.append(f"{len(driver.called)} tools")


async def two_workspaces(report, place, transport, mode):
    title = f"python {transport} {MODES[mode]}"
    api = place.project("api", lab.NODE)
    docs = place.project("docs", {"guide.md": "# Guide\n"})
    spec = f"primary={api},docs={docs}:ro"
    with report.check(title, "two workspaces are told apart") as seen:
        async with connected(place, transport, mode, ["--workspaces", spec]) as client:
            handle = "one" if transport == "http" else None
            driver = Driver(client, (await client.list_tools()).tools, handle)
            text = await driver.refused("Read", "E_WORKSPACE_NOT_CHOSEN", file_path="guide.md")
            seen.append(text)
            text = await driver.refused("Read", "E_UNKNOWN_WORKSPACE", file_path="x", workspace="nope")
            seen.append(text)
            await driver.call("Read", file_path="guide.md", workspace="docs")
            write = {"file_path": "guide.md", "content": "x"}
            await driver.refused("Write", "E_READ_ONLY", **write, workspace="docs")
            await driver.call("Write", **write, workspace="primary")
            lab.expect((docs / "guide.md").read_text() == "# Guide\n", "docs was changed")
            # Reading the file of one workspace does not unlock the same name in another.
            (api / "README.md").write_text("a\n")
            (docs / "README.md").write_text("a\n")
            await driver.call("Read", file_path="README.md", workspace="docs")
            write = {"file_path": "README.md", "content": "b\n", "workspace": "primary"}
            await driver.refused("Write", "E_NOT_READ", **write)
            facts, text = await driver.call("Grep", pattern="a", workspace="all")
            lab.expect(set(facts["workspaces"]) == {"primary", "docs"}, facts)
            lab.expect("=== docs ===" in text and "=== primary ===" in text, text)
            facts, _ = await driver.call("workspaces")
            lab.expect(len(facts["workspaces"]) == 2, facts)


async def guessed(thief, victim_id, own_id):
    """Tries ids that a client could think of, and fails for each."""
    near = [own_id[:-1] + digit for digit in "0123456789abcdefghjkmnpqrstvwxyz" if own_id[-1] != digit]
    for guess in [f"job_{number}" for number in range(1, 20)] + near:
        lab.expect(guess != victim_id, "an id can be guessed")
        for tool in ("BashOutput", "KillShell"):
            text = await thief.refused(tool, "E_JOB_NOT_FOUND", shell_id=guess)
            lab.expect(text == f"unknown shell_id: {guess}", text)


@contextlib.asynccontextmanager
async def two(place, transport, modes, root):
    """Opens two clients in one workspace at once: of one server over HTTP, of a server each over stdin."""
    arguments = ["--workspace", str(root)]
    async with contextlib.AsyncExitStack() as stack:
        if transport == "http":
            url = stack.enter_context(place.http(arguments))
            yield [await stack.enter_async_context(reached(url, mode)) for mode in modes]
            return
        yield [await stack.enter_async_context(connected(place, transport, mode, arguments)) for mode in modes]


async def two_clients(report, place, transport, modes):
    """Two clients at once, as they come: neither has anything of the other."""
    title = f"python {transport} {' and '.join(MODES[mode] for mode in modes)}"
    root = place.project("shared", {"a.txt": "old\n"})
    with report.check(title, "two clients at once: both end"):
        async with two(place, transport, modes, root) as (first, second):
            tools = (await first.list_tools()).tools
            lab.expect([first.protocol_version, second.protocol_version] == [MODES[mode] for mode in modes], "revision")
            victim, thief = Driver(first, tools), Driver(second, tools)
            edit = {"file_path": "a.txt", "old_string": "old", "new_string": "theirs"}
            with report.check(title, "two clients at once: one cannot edit what the other has read"):
                facts, _ = await victim.call("Read", file_path="a.txt")
                # In this order: a refused Edit shows the lines, and then they are known.
                await thief.refused("Write", "E_NOT_READ", file_path="a.txt", content="theirs\n")
                await thief.refused("Edit", "E_NOT_READ", **edit)
                lab.expect((root / "a.txt").read_text() == "old\n", "it was changed")
            with report.check(title, "two clients at once: one cannot read or kill jobs of the other"):
                job, _ = await victim.call("Bash", command="echo mine; sleep 300", run_in_background=True)
                own, _ = await thief.call("Bash", command="sleep 300", run_in_background=True)
                await guessed(thief, job["shell_id"], own["shell_id"])
                output, text = await victim.call("BashOutput", shell_id=job["shell_id"], wait_seconds=5)
                lab.expect("mine" in text and not output["ended"], text)
            with report.check(title, "two clients at once: one cannot undo what the other has changed"):
                # Without a session the hash of the reply says which version the client knows.
                stateless = transport == "http" and MODES[modes[0]] == "2026-07-28"
                known = {"expected_hash": facts["hash"]} if stateless else {}
                await victim.call("Edit", **{**edit, "new_string": "mine"}, **known)
                await thief.answer("undo", {})
                lab.expect((root / "a.txt").read_text() == "mine\n", "it was not changed, or taken back")
            with report.check(title, "two clients at once: each works on"):
                for driver, started in ((victim, job), (thief, own)):
                    await driver.call("KillShell", shell_id=started["shell_id"])
            with report.check(title, "two clients at once: no edit of either is lost"):
                await raced(victim, thief, root)


async def raced(first, second, root):
    """Both make files and change lines of one file at the same time."""
    lines = [f"{number:02} of {name}" for number in range(20) for name in ("first", "second")]
    (root / "race.txt").write_text("".join(f"{line} old\n" for line in lines))

    async def change(driver, name):
        for number in range(20):
            text = f"{number:02} of {name}"
            edit = {"file_path": "race.txt", "old_string": f"{text} old", "new_string": f"{text} new"}
            refused = True
            while refused:
                # The other one may change the file after this; the edit is then refused.
                facts, _ = await driver.call("Read", file_path="race.txt")
                result = await driver.answer("Edit", {**edit, "expected_hash": facts["hash"]})
                refused = result.is_error
                code = result.structured_content.get("error", {}).get("code")
                lab.expect(code in (None, "E_CHANGED_SINCE_READ"), text_of(result))

    with anyio.fail_after(lab.PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(change, first, "first")
            tasks.start_soon(change, second, "second")
    expected = "".join(f"{line} new\n" for line in lines)
    lab.expect((root / "race.txt").read_text() == expected, (root / "race.txt").read_text())


async def drive(report, place):
    rust = (lab.CARGO, "src/lib.rs", lab.CARGO_BUG)
    node = (lab.NODE, "basket.js", ("prices.length", "prices.reduce((sum, one) => sum + one, 0)"))
    for transport, mode, project in (
        ("stdio", "legacy", rust),
        ("stdio", "auto", node),
        ("http", "legacy", node),
        ("http", "auto", rust),
    ):
        await one_workspace(report, place, transport, mode, *project)
        await two_workspaces(report, place, transport, mode)
    for transport in ("stdio", "http"):
        for modes in (("legacy", "legacy"), ("auto", "auto"), ("legacy", "auto"), ("auto", "legacy")):
            await two_clients(report, place, transport, modes)
