"""The servers under test: each maps the steps of an agent to its best tool for them.

A step that a server has no tool for raises `Cannot`. The mapping follows the server's own advice: the tool
that its definitions name for the purpose, with the arguments that they recommend.
"""

import re

from client import Cannot


class Server:
    """The steps of an agent. Paths are relative to the project; lines count from 1."""

    name = ""

    def __init__(self, client, root):
        self.client = client
        self.root = root

    def find_text(self, pattern, under="."):
        """Every (path, line) whose text matches."""
        raise Cannot("search in files")

    def count_text(self, pattern, under="."):
        return len(self.find_text(pattern, under))

    def find_files(self, pattern):
        raise Cannot("search for files")

    def read(self, path, first, count):
        """The text of `count` lines."""
        raise Cannot("read")

    def read_all(self, path):
        raise Cannot("read")

    def read_end(self, path, count):
        raise Cannot("read")

    def read_symbol(self, path, name):
        """The text of a function: found by its definition, read until its indentation ends."""
        found = [line for place, line in self.find_text(rf"def {name}\(", path) if place == path]
        return self.read_block(path, found[-1])

    def read_block(self, path, line, step=60):
        lines = []
        while True:
            more = self.read(path, line + len(lines), step).splitlines()
            lines += more
            block = block_of(lines)
            if len(block) < len(lines) or len(more) < step:
                return "\n".join(block)

    def edit(self, path, old, new, every=False):
        raise Cannot("edit")

    def write(self, path, content):
        raise Cannot("write")

    def run(self, command):
        """The output of a command and its exit code."""
        raise Cannot("commands")

    def test(self, command):
        """The text about the project's tests."""
        return self.run(command)[0]

    def patch(self, diff):
        """Applies a unified diff: by one edit for each hunk where there is no tool for it."""
        for path, old, new in hunks(diff):
            self.edit(path, old, new)

    def rename(self, path, old, new):
        for place in sorted({place for place, _ in self.find_text(rf"\b{old}\b")}):
            self.edit(place, old, new, every=True)

    def undo(self, path, old, new):
        """Takes the change `old` → `new` of a file back."""
        self.edit(path, new, old)

    def start(self, command):
        raise Cannot("background commands")

    def output(self, job):
        raise Cannot("background commands")

    def stop(self, job):
        raise Cannot("background commands")


def block_of(lines):
    """The leading lines of an indented block, without blank lines at its end."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    end = len(lines)
    for number, line in enumerate(lines[1:], 1):
        closes = line.strip() and len(line) - len(line.lstrip()) <= indent
        if closes and not re.match(r"\s*\)", line):
            end = number
            break
    while end > 1 and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def hunks(diff):
    """The (path, old text, new text) of each hunk of a unified diff."""
    path, old, new, found = None, [], [], []

    def close():
        if old or new:
            found.append((path, "".join(old), "".join(new)))
            old.clear()
            new.clear()

    for line in diff.splitlines(keepends=True):
        if line.startswith("--- "):
            close()
        elif line.startswith("+++ "):
            path = line[4:].strip().removeprefix("b/")
        elif line.startswith("@@"):
            close()
        else:
            if line[0] in " -":
                old.append(line[1:])
            if line[0] in " +":
                new.append(line[1:])
    close()
    return found
