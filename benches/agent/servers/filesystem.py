"""The reference server `@modelcontextprotocol/server-filesystem`."""

import re
from pathlib import Path

from servers import Server, block_of, hunks


class Filesystem(Server):
    name = "server-filesystem"

    @staticmethod
    def argv(cache, root):
        package = cache / "node_modules/@modelcontextprotocol/server-filesystem"
        return ["node", str(package / "dist/index.js"), str(root)]

    def at(self, path):
        return str(self.root / path)

    def find_files(self, pattern):
        text = self.client.call("search_files", {"path": str(self.root), "pattern": f"**/{pattern}"})
        return [str(Path(line).relative_to(self.root)) for line in text.splitlines() if line.startswith("/")]

    def read_symbol(self, path, name):
        lines = self.read_all(path).splitlines()
        line = [number for number, text in enumerate(lines) if f"def {name}(" in text][-1]
        return "\n".join(block_of(lines[line:]))

    def read_method(self, path, owner, name):
        """Of the definitions below the class, the last one is the implementation."""
        lines = self.read_all(path).splitlines()
        start = next(number for number, text in enumerate(lines) if re.match(rf"class {owner}\b", text))
        members = block_of(lines[start:])
        line = [number for number, text in enumerate(members) if f"def {name}(" in text][-1]
        return "\n".join(block_of(members[line:]))

    def read(self, path, first, count):
        text = self.client.call("read_text_file", {"path": self.at(path), "head": first + count - 1})
        return "\n".join(text.splitlines()[first - 1 :])

    def read_all(self, path):
        return self.client.call("read_text_file", {"path": self.at(path)})

    def read_end(self, path, count):
        return self.client.call("read_text_file", {"path": self.at(path), "tail": count})

    def edit(self, path, old, new, every=False):
        change = {"oldText": old, "newText": new}
        return self.client.call("edit_file", {"path": self.at(path), "edits": [change]})

    def write(self, path, content):
        return self.client.call("write_file", {"path": self.at(path), "content": content})

    def patch(self, diff):
        changes = {}
        for path, old, new in hunks(diff):
            changes.setdefault(path, []).append({"oldText": old, "newText": new})
        for path, edits in changes.items():
            self.client.call("edit_file", {"path": self.at(path), "edits": edits})
