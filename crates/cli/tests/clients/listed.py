"""Clients that connect to `carrel mcp` with the configuration of the documentation, and ask no model.

Each has a command that lists its servers, for which it starts them and shakes hands.
"""

import json
import os
import pathlib
import re
import subprocess

import lab
import snippets


class Client:
    """A client in a home of its own."""

    def __init__(self, place, cache, root):
        self.root, self.home = root, place.directory("home")
        self.cache = pathlib.Path(cache).absolute()
        node = self.cache / "node_modules/node/bin"
        modules = self.cache / "node_modules/.bin"
        # Nothing of the machine: no key, no proxy, no configuration of anybody.
        self.environment = {
            "PATH": f"{place.on_path()}:{modules}:{node}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TERM": "dumb",
            "NO_COLOR": "1",
            "CI": "1",
        }

    def write(self, relative, text):
        path = self.home / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, command, **more):
        done = subprocess.run(
            command,
            env={**self.environment, **more},
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * lab.PATIENCE,
        )
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", done.stdout + done.stderr)
        lab.expect(done.returncode == 0, f"{command} ended with {done.returncode}: {text}")
        return text

    def must_list(self, text):
        """Expects one line, or two, that name the server and call it connected."""
        lines = [line for line in text.splitlines() if "carrel" in line]
        lab.expect(lines, f"carrel is not listed: {text}")
        lab.expect(re.search(r"(?<!not )(?<!dis)connected", lines[0], re.I), f"carrel is not connected: {text}")
        return lines[0].strip()


def claude(client):
    client.run(["sh", "-euc", snippets.snippet("Claude Code", client.root)])
    return client.must_list(client.run(["claude", "mcp", "list"]))


def gemini(client):
    client.write(".gemini/settings.json", snippets.snippet("Gemini CLI", client.root))
    # A person answers this once for each directory.
    client.write(".gemini/trustedFolders.json", json.dumps({str(client.root): "TRUST_FOLDER"}))
    return client.must_list(client.run(["gemini", "mcp", "list"]))


def opencode(client):
    client.write(".config/opencode/opencode.json", snippets.snippet("opencode", client.root))
    return client.must_list(client.run(["opencode", "mcp", "list"]))


CLIENTS = {
    "claude": ("Claude Code", "@anthropic-ai/claude-code", claude),
    "gemini": ("Gemini CLI", "@google/gemini-cli", gemini),
    "opencode": ("opencode", "opencode-ai", opencode),
}


def drive(report, place, cache, name):
    title, package, listed = CLIENTS[name]
    print(f"\n{title} {lab.installed(cache, package)}", flush=True)
    root = place.project("basket", lab.NODE)
    with report.check(name, "it connects with the documented configuration") as seen:
        seen.append(listed(Client(place, cache, root)))
