"""What every client needs: projects to work on, the program under test, and one line per check."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 60.0

# The server's rule: it ends within two seconds of being asked to.
STOP_SECONDS = 2.0

CARGO = {
    "Cargo.toml": '[package]\nname = "ledger"\nversion = "0.1.0"\nedition = "2021"\n',
    ".gitignore": "target\nCargo.lock\n",
    "src/lib.rs": """/// Adds what was paid.
pub fn total(paid: &[i64]) -> i64 {
    paid.iter().map(|amount| amount - 1).sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn adds_every_amount() {
        assert_eq!(super::total(&[2, 3]), 5);
    }
}
""",
}
CARGO_BUG = (".map(|amount| amount - 1).sum()", ".sum()")

NODE = {
    "package.json": json.dumps(
        {
            "name": "basket",
            "version": "1.0.0",
            "scripts": {"test": "node --test", "hello": "node -e \"console.log('hello')\""},
        }
    ),
    "basket.js": "exports.total = (prices) => prices.length;\n",
    "basket.test.js": """const test = require('node:test');
const assert = require('node:assert');
const { total } = require('./basket.js');

test('adds every price', () => {
  assert.strictEqual(total([2, 3]), 5);
});
""",
}


class Failed(Exception):
    """A check that did not hold."""


class Report:
    """Counts checks and prints each."""

    def __init__(self):
        self.passed, self.failed = 0, []
        self.began = time.monotonic()

    def ok(self, client, claim, seen=""):
        self.passed += 1
        print(f"ok    {client}: {claim}{shown(seen)}", flush=True)

    def fail(self, client, claim, reason):
        self.failed.append(f"{client}: {claim}")
        print(f"FAIL  {client}: {claim}{shown(reason, 2000)}", flush=True)

    @contextlib.contextmanager
    def check(self, client, claim):
        """Makes one check of a block; what it appends to the list is shown."""
        seen = []
        try:
            yield seen
        except Exception as error:  # whatever went wrong, the other checks go on
            self.fail(client, claim, str(innermost(error)) or repr(error))
        else:
            self.ok(client, claim, "; ".join(str(one) for one in seen))

    def summary(self):
        seconds = time.monotonic() - self.began
        print(f"\n{self.passed} passed, {len(self.failed)} failed in {seconds:.0f} s")
        for one in self.failed:
            print(f"failed: {one}")
        return 1 if self.failed or not self.passed else 0


def shown(text, limit=160):
    text = " ".join(str(text).split())
    if len(text) > limit:
        text = text[:limit] + "…"
    return f" ({text})" if text else ""


def innermost(error):
    """Looks into the groups that tasks wrap their errors in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def expect(condition, message):
    if not condition:
        raise Failed(message)


# What servers over HTTP ask of their clients.
TOKEN = "a-token-for-clients-that-were-written-elsewhere"
AUTHORIZATION = f"Bearer {TOKEN}"


class Lab:
    """A directory with projects in it, and the program under test."""

    def __init__(self, carrel):
        self.carrel = os.path.abspath(carrel)
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="carrel-clients-"))
        # Several agents may ask at once.
        self.made = itertools.count(1)
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(self.base / "state"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
        }
        self.environment.pop("CARREL_MCP_TOKEN", None)

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)

    def directory(self, name):
        path = self.base / f"{next(self.made)}-{name}" / name
        path.mkdir(parents=True)
        return path

    def on_path(self):
        """Returns a directory in which the program under test is called `carrel`."""
        directory = self.base / "bin"
        directory.mkdir(exist_ok=True)
        program = directory / "carrel"
        if not program.is_symlink():
            program.symlink_to(self.carrel)
        return directory

    def project(self, name, files):
        """Makes a repository with one commit."""
        root = self.directory(name)
        for relative, text in files.items():
            path = root / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git(root, "init", "--quiet", "--initial-branch=main")
        self.git(root, "config", "user.name", "Ann")
        self.git(root, "config", "user.email", "ann@example.org")
        self.git(root, "add", "--all")
        self.git(root, "commit", "--quiet", "--message=Begin")
        return root

    def git(self, root, *words):
        command = ["git", "-C", str(root), *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        expect(done.returncode == 0, f"{command}: {done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def http(self, arguments, environment=None):
        """Serves over HTTP behind `TOKEN`; fails if the server does not end as it should."""
        command = [self.carrel, "mcp", *arguments, "--http", "127.0.0.1:0"]
        log = self.base / f"http-{time.monotonic_ns()}.log"
        with open(log, "wb") as stderr:
            server = subprocess.Popen(
                command,
                env={**self.environment, "CARREL_MCP_TOKEN": TOKEN, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        try:
            yield wait_for(lambda: address_in(log, server), "the address of the server")
        finally:
            began = time.monotonic()
            server.send_signal(signal.SIGTERM)
            try:
                status = server.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                status = f"killed after {PATIENCE} s"
            took = time.monotonic() - began
        expect(status == 0, f"the server ended with {status}: {log.read_text()}")
        expect(took < STOP_SECONDS, f"the server took {took:.1f} s to end")


def address_in(log, server):
    found = re.search(r"listening on (http://\S+)", log.read_text())
    if found is None and server.poll() is not None:
        raise Failed(f"the server ended with {server.returncode}: {log.read_text()}")
    return found and found[1]


def wait_for(question, what, seconds=PATIENCE):
    """Asks until there is an answer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answer = question()
        if answer:
            return answer
        time.sleep(0.02)
    raise Failed(f"waited {seconds} s for {what}")


def runs(argument):
    """Says whether any process of this machine has an argument that contains this."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            # A shell that was told to start it does not count.
            if words[0].endswith(b"sleep") and argument.encode() in words:
                return True
    return False


def installed(cache, package):
    """Returns the version of an npm package."""
    manifest = pathlib.Path(cache) / "node_modules" / package / "package.json"
    return json.loads(manifest.read_text())["version"]
