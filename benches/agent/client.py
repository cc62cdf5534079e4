"""A client of the Model Context Protocol over stdin and stdout that counts."""

import json
import os
import subprocess
import threading
from dataclasses import dataclass

REVISION = "2025-11-25"
# Longest wait for one answer, in seconds.
PATIENCE = 180


@dataclass
class Usage:
    """The cost of a task, as a model and its provider see it."""

    calls: int = 0
    failed: int = 0
    sent: int = 0
    returned: int = 0

    def add(self, other):
        self.calls += other.calls
        self.failed += other.failed
        self.sent += other.sent
        self.returned += other.returned


class Refused(Exception):
    """The server did not do the call; the text is its answer."""


class Cannot(Exception):
    """The server has no tool for this step."""


class Client:
    def __init__(self, argv, cwd, env=None):
        self.usage = Usage()
        self.last = 0
        self.child = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        started = self.request(
            "initialize",
            {
                "protocolVersion": REVISION,
                "capabilities": {},
                "clientInfo": {"name": "scripted-agent", "version": "1"},
            },
        )
        self.instructions = started.get("instructions") or ""
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        self.child.stdin.write(line.encode())
        self.child.stdin.flush()

    def request(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        guard = threading.Timer(PATIENCE, self.child.kill)
        guard.start()
        try:
            while True:
                line = self.child.stdout.readline()
                if not line:
                    raise RuntimeError(f"{method}: the server ended or was silent for {PATIENCE} s")
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if message.get("id") == self.last and "method" not in message:
                    break
        finally:
            guard.cancel()
        if "error" in message:
            raise Refused(json.dumps(message["error"]))
        return message["result"]

    def definitions(self):
        """The bytes that a model reads before its first call: tool definitions and instructions."""
        tools = self.request("tools/list", {})["tools"]
        shown = [{key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in tools]
        return len(json.dumps(shown, ensure_ascii=False).encode()) + len(self.instructions.encode())

    def call(self, tool, arguments, failed=None):
        """Calls a tool and returns its text. `failed` finds a failure in a text that claims success."""
        self.usage.calls += 1
        self.usage.sent += len(json.dumps(arguments, ensure_ascii=False).encode())
        try:
            result = self.request("tools/call", {"name": tool, "arguments": arguments})
        except Refused as refusal:
            self.usage.failed += 1
            self.usage.returned += len(str(refusal).encode())
            raise
        text = "\n".join(block.get("text", "") for block in result.get("content", []))
        self.usage.returned += len(text.encode())
        if result.get("isError") or (failed and failed(text)):
            self.usage.failed += 1
            raise Refused(text)
        return text

    def close(self):
        self.child.stdin.close()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
