"""Runs the scripted agent tasks against Carrel and three other servers, and prints one table.

    python3 benches/agent/run.py [--code] [--carrel PROGRAM] [--cache DIR] [--server NAME]… [--task NAME]… [--json FILE]

With --code the tasks are those for code intelligence, with Carrel's tools for it and without them. They need clangd,
and rust-analyzer by rustup. Projects and servers are fetched once, with pip, npm and cargo, into the cache (target/agent by default).
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from client import Cannot, Client, Refused, Usage  # noqa: E402
from code_tasks import CODE_TASKS  # noqa: E402
from servers.carrel import Carrel, CarrelFiles  # noqa: E402
from servers.carrel_code import CarrelCode  # noqa: E402
from servers.desktop_commander import DesktopCommander  # noqa: E402
from servers.filesystem import Filesystem  # noqa: E402
from servers.serena import Serena  # noqa: E402
from tasks import TASKS  # noqa: E402

SERVERS = [Carrel, Filesystem, DesktopCommander, Serena]
CODE_SERVERS = [CarrelCode, CarrelFiles, Filesystem, DesktopCommander, Serena]
# Left behind by servers and test tools beside the work itself.
NOT_WORK = {".git", ".venv", ".serena", ".pytest_cache", ".cache", "target", "__pycache__", ".gitignore"}


def quiet(argv, **options):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def fetch(cache, pins):
    """Fetches what the pins name; what is there already stays."""
    cache.mkdir(parents=True, exist_ok=True)
    for name, pin in pins["projects"].items():
        archive = cache / pin["archive"]
        if not archive.exists():
            wanted = f"{name}=={pin['version']}"
            if pin["registry"] == "pypi":
                quiet(["pip", "download", "--no-deps", "--no-binary", ":all:", wanted], cwd=cache)
            elif pin["registry"] == "crates.io":
                fetch_crate(cache, name, pin)
            else:
                quiet(["npm", "pack", f"{name}@{pin['version']}"], cwd=cache)
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != pin["sha256"]:
            sys.exit(f"{archive} has the hash {found}, not the pinned {pin['sha256']}")
    if not (cache / "node_modules").exists():
        manifest = {"private": True, "overrides": pins["npm_overrides"]}
        (cache / "package.json").write_text(json.dumps(manifest))
        packages = [f"{name}@{version}" for name, version in pins["npm"].items()]
        quiet(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages], cwd=cache)
    if not (cache / "serena").exists():
        quiet([sys.executable, "-m", "venv", str(cache / "serena")])
        packages = [f"{name}=={version}" for name, version in pins["pypi"].items()]
        quiet([str(cache / "serena/bin/pip"), "install", *packages])


def fetch_crate(cache, name, pin):
    """Has cargo fetch the dependency of a manifest that is thrown away."""
    with tempfile.TemporaryDirectory() as scratch:
        manifest = Path(scratch) / "Cargo.toml"
        package = '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
        manifest.write_text(f'{package}[dependencies]\n{name} = "={pin["version"]}"\n')
        manifest.with_name("lib.rs").write_text("")
        quiet(["cargo", "fetch"], cwd=scratch)
    (archive,) = (cargo_home() / "registry/cache").glob(f"*/{pin['archive']}")
    shutil.copy(archive, cache)


def cargo_home():
    return Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))


def environment(cache, server):
    """A home of its own, so that a server's settings are its defaults."""
    home = cache / "homes" / server.__name__
    home.mkdir(parents=True, exist_ok=True)
    rustup = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
    env = {"HOME": str(home), "CARGO_HOME": str(cargo_home()), "RUSTUP_HOME": rustup}
    if server is Serena:
        binaries = cache / "serena/bin"
        env["PATH"] = f"{binaries}:{os.environ['PATH']}"
        config = home / ".serena/serena_config.yml"
        if not config.exists():
            quiet([str(binaries / "serena"), "init"], env={**os.environ, **env}, stdin=subprocess.DEVNULL)
        text = config.read_text()
        # Language servers that it would otherwise fetch, one of them with an interpreter of its own.
        own = f"ls_specific_settings:\n  python:\n    ls_path: {binaries}/pyright-langserver"
        if clangd := shutil.which("clangd"):
            own += f"\n  cpp:\n    ls_path: {clangd}"
        config.write_text(text.replace("ls_specific_settings: {}", own))
    return env


def unpack(cache, pins, name, into):
    with tarfile.open(cache / pins["projects"][name]["archive"]) as archive:
        archive.extractall(into, filter="data")
    (only,) = into.iterdir()
    return only / pins["projects"][name].get("directory", "")


def prepare(cache, pins, projects):
    """Unpacks each project once, as a repository with what its tests and type checker need."""
    ready = cache / "ready"
    if ready.exists():
        shutil.rmtree(ready)
    for name in projects:
        into = ready / name
        into.mkdir(parents=True)
        root = unpack(cache, pins, name, into)
        root.rename(into / "tree")
        root = into / "tree"
        ignored = [".venv/", "__pycache__/", ".pytest_cache/", ".serena/", ".cache/", "target/"]
        (root / ".gitignore").write_text("\n".join(ignored) + "\n")
        quiet(["git", "init", "-q", "."], cwd=root)
        commit(root, "pinned")
        if (root / "Cargo.toml").exists():
            quiet(["cargo", "fetch"], cwd=root)
    return ready


def commit(root, message):
    quiet(["git", "add", "-A"], cwd=root)
    identity = ["-c", "user.name=agent", "-c", "user.email=agent@example.org"]
    quiet(["git", *identity, "commit", "-qm", message], cwd=root)


def python():
    return "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def environment_of_tests(root, pins):
    """A virtual environment in the place where people put it."""
    quiet([python(), "-m", "venv", ".venv"], cwd=root)
    quiet([".venv/bin/pip", "install", f"pytest=={pins['pytest']}", "-e", "."], cwd=root)


def environment_of_checker(root, ready, pins):
    """A virtual environment with the type checker, made once and copied."""
    made = ready / "checker"
    if not made.exists():
        quiet([python(), "-m", "venv", str(made)])
        quiet([str(made / "bin/pip"), "install", f"ty=={pins['ty']}"])
    shutil.copytree(made, root / ".venv", symlinks=True)


def change(root, replacements):
    for path, old, new in replacements:
        file = root / path
        if old is None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(new)
            continue
        text = file.read_text()
        assert old in text, f"{path} has no {old!r}"
        file.write_text(text.replace(old, new))


def tree_of(root):
    files = {}
    for directory, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name not in NOT_WORK]
        for name in names:
            if name not in NOT_WORK:
                path = Path(directory, name)
                files[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return files


def expected_tree(pristine, task):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "tree"
        shutil.copytree(pristine, root, symlinks=True, ignore=shutil.ignore_patterns(".venv"))
        change(root, task.given)
        change(root, task.changes)
        return tree_of(root)


def matches(answer, expected):
    if isinstance(expected, str) and expected.startswith("sha256:"):
        text = "\n".join(line.strip() for line in str(answer).splitlines())
        return hashlib.sha256(text.encode()).hexdigest() == expected.removeprefix("sha256:")
    if isinstance(expected, list):
        return list(answer or []) == expected
    return answer == expected


def attempt(task, server, options, pins, ready):
    """One task with one server: the outcome, its cost and the reason of a failure."""
    pristine = ready / task.project / "tree"
    root = Path(tempfile.mkdtemp(prefix=f"{task.name}-", dir=options.scratch)) / "tree"
    usage = Usage()
    clients = []
    try:
        shutil.copytree(pristine, root, symlinks=True)
        if task.project == "click" and task.name in ("fix-python", "new-module"):
            environment_of_tests(root, pins)
        if task.type_checker:
            environment_of_checker(root, ready, pins)
        change(root, task.given)
        if task.given:
            commit(root, "given")
        place = options.carrel if issubclass(server, CarrelFiles) else options.cache
        agents = []
        for _ in range(task.agents):
            client = Client(server.argv(place, root), root, environment(options.cache, server))
            clients.append(client)
            agents.append(server(client, root))
        reason = ""
        try:
            answer = task.steps(*agents)
        except Cannot as missing:
            return "cannot", usage, f"no tool for: {missing}"
        except Refused as refusal:
            answer, reason = None, f"refused: {str(refusal)[:300]}"
        except Exception:
            answer, reason = None, f"the script failed: {traceback.format_exc(limit=-2)}"
        for client in clients:
            usage.add(client.usage)
        right = task.answer is None or matches(answer, task.answer)
        if not right and not reason:
            reason = f"answered {str(answer)[:300]}"
        if right and not reason:
            expected, found = expected_tree(pristine, task), tree_of(root)
            different = sorted(path for path in expected.keys() | found.keys()
                               if expected.get(path) != found.get(path))
            if different:
                reason = f"the tree differs in {', '.join(different[:5])}"
        if not reason:
            return "right", usage, ""
        confident = usage.failed == 0 and not reason.startswith(("refused", "the script failed"))
        return ("wrong, confident" if confident else "wrong"), usage, reason
    finally:
        for client in clients:
            client.close()
        shutil.rmtree(root.parent, ignore_errors=True)


def definitions(server, options, ready):
    root = ready / "fastify" / "tree"
    place = options.carrel if issubclass(server, CarrelFiles) else options.cache
    client = Client(server.argv(place, root), root, environment(options.cache, server))
    try:
        agent = server(client, root)
        return client.definitions() + getattr(agent, "manuals", 0)
    finally:
        client.close()


def table(results, costs, servers, tasks):
    """One row for a task: outcome, calls, failed calls and bytes returned of each server."""
    names = [server.name for server in servers]
    print("| task | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for task in tasks:
        cells = []
        for name in names:
            outcome, usage, _ = results[name][task.name]
            if outcome == "cannot":
                cells.append("–")
                continue
            failed = f", {usage.failed} failed" if usage.failed else ""
            mark = "" if outcome == "right" else f" **{outcome}**"
            cells.append(f"{usage.returned:,} B, {usage.calls} calls{failed}{mark}")
        print(f"| {task.name} | " + " | ".join(cells) + " |")

    def total(label, count):
        print(f"| **{label}** | " + " | ".join(str(count(name)) for name in names) + " |")

    rows = lambda name: results[name].values()  # noqa: E731
    total("right", lambda name: sum(outcome == "right" for outcome, _, _ in rows(name)))
    total("cannot", lambda name: sum(outcome == "cannot" for outcome, _, _ in rows(name)))
    total("wrong", lambda name: sum(outcome == "wrong" for outcome, _, _ in rows(name)))
    total("wrong, confident", lambda name: sum(outcome == "wrong, confident" for outcome, _, _ in rows(name)))
    total("failed calls", lambda name: sum(usage.failed for _, usage, _ in rows(name)))
    total("calls", lambda name: sum(usage.calls for _, usage, _ in rows(name)))
    total("bytes of definitions", lambda name: f"{costs[name]:,}")
    if "Carrel" not in results:
        return
    print()
    compare(results, tasks)


def compare(results, tasks):
    """Carrel against the best other server, task by task, where another has the right result."""
    mine = other = 0
    mine_failed = other_failed = 0
    compared = 0
    for task in tasks:
        outcome, usage, _ = results["Carrel"][task.name]
        rivals = [entry[task.name] for name, entry in results.items() if not name.startswith("Carrel")]
        rivals = [rival for result, rival, _ in rivals if result == "right"]
        if outcome != "right" or not rivals:
            continue
        compared += 1
        mine += usage.returned
        mine_failed += usage.failed
        other += min(rival.returned for rival in rivals)
        other_failed += min(rival.failed for rival in rivals)
    if other:
        print(f"In {compared} tasks that Carrel and another server did right, Carrel returned {mine:,} bytes and")
        print(f"the cheapest other server of each task {other:,}: {mine / other:.2f} ×.")
        print(f"Failed calls: {mine_failed} against {other_failed} of the other with the fewest in each task.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target")).resolve()
    parser.add_argument("--carrel", default=str(target / "release/carrel"))
    parser.add_argument("--cache", type=Path, default=target / "agent")
    parser.add_argument("--code", action="store_true")
    parser.add_argument("--server", action="append")
    parser.add_argument("--task", action="append")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # Servers start in the project.
    options.carrel = str(Path(options.carrel).resolve())
    options.cache = options.cache.resolve()
    if not Path(options.carrel).is_file():
        sys.exit(f"{options.carrel} is not there; make build makes it")
    pins = json.loads((HERE / "pins.json").read_text())
    fetch(options.cache, pins)
    servers, tasks = (CODE_SERVERS, CODE_TASKS) if options.code else (SERVERS, TASKS)
    servers = [server for server in servers if not options.server or server.name in options.server]
    tasks = [task for task in tasks if not options.task or task.name in options.task]
    ready = prepare(options.cache, pins, {"fastify", *(task.project for task in tasks)})
    results, costs = {}, {}
    with tempfile.TemporaryDirectory(prefix="agents-") as scratch:
        options.scratch = scratch
        for server in servers:
            costs[server.name] = definitions(server, options, ready)
            results[server.name] = {}
            for task in tasks:
                outcome = attempt(task, server, options, pins, ready)
                results[server.name][task.name] = outcome
                print(f"{server.name}: {task.name}: {outcome[0]} {outcome[2]}".rstrip(), file=sys.stderr)
    table(results, costs, servers, tasks)
    if options.json:
        rows = {name: {task: [outcome, vars(usage), reason] for task, (outcome, usage, reason) in entry.items()}
                for name, entry in results.items()}
        options.json.write_text(json.dumps({"definitions": costs, "results": rows}, indent=1))


if __name__ == "__main__":
    main()
