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

    def read_method(self, path, owner, name):
        """The text of a method: an agent sees from the lines of a search which definition is below which class."""
        line, inside = None, False
        for _, found in self.find_text(rf"^class |def {name}\(", path):
            text = self.shown(path, found)
            if text.startswith("class "):
                inside = re.match(rf"class {owner}\b", text) is not None
            elif inside:
                line = found
        return self.read_block(path, line)

    def callers(self, path, name, head):
        """The names of the functions that call `name`. `head` matches the first line of a function."""
        found = set()
        for _, line in self.find_text(rf"\b{name}\(", path):
            text = self.shown(path, line)
            if not re.match(head, text) and f"{name}()" not in text:
                found.add(self.enclosing(path, line, head))
        return sorted(found)

    def where(self, question, pattern, sign, head):
        """The file and the function that do something: an agent knows by `sign` that it has found the place."""
        for path, line in self.find_text(pattern):
            if sign in self.shown(path, line):
                return [path, self.enclosing(path, line, head)]
        return None

    def enclosing(self, path, line, head, step=60):
        """The name of the function around a line: read upwards until its head."""
        while line > 1:
            first = max(1, line - step)
            for text in reversed(self.read(path, first, line - first).splitlines()):
                if found := re.match(head, text):
                    return found[1]
            line = first
        return None

    def change_signature(self, path, name, head, new_head, argument):
        """Gives a function another head, and each call one more argument."""
        calls = set()
        for place, line in self.find_text(rf"\b{name}\("):
            text = self.shown(place, line)
            if head not in text:
                calls.add((place, re.search(rf"\b{name}\([^()]*\)", text)[0]))
        self.edit(path, head, new_head)
        for place, call in sorted(calls):
            self.edit(place, call, f"{call[:-1]}, {argument})", every=True)

    def shown(self, path, line):
        """A line that a search before has shown."""
        return (self.root / path).read_text(errors="replace").split("\n")[line - 1]

    def rename_function(self, path, old, new):
        self.rename(path, old, new)

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
