"""`carrel mcp`, as it starts without options, and with the tools that know text alone."""

import re

from client import Refused
from servers import Server


class CarrelFiles(Server):
    """The tools that know text alone."""

    name = "Carrel, files only"

    @staticmethod
    def argv(program, root):
        return [program, "mcp", "--workspace", str(root), "--tools", "files,shell,verify,git"]

    def pages(self, tool, arguments):
        """The replies of a search, page by page."""
        while True:
            text = self.client.call(tool, arguments)
            yield text
            more = re.search(r"offset (\d+)\]?\s*$", text)
            if not more:
                return
            arguments = {**arguments, "offset": int(more[1])}

    def find_text(self, pattern, under="."):
        found = []
        for text in self.pages("Grep", {"pattern": pattern, "path": under}):
            for line in text.splitlines():
                hit = re.match(r"(.+?):(\d+):", line)
                if hit:
                    found.append((hit[1], int(hit[2])))
        return found

    def count_text(self, pattern, under="."):
        text = self.client.call("Grep", {"pattern": pattern, "path": under, "output_mode": "count"})
        return sum(int(count) for count in re.findall(r":(\d+)$", text, re.M))

    def find_files(self, pattern):
        found = []
        for text in self.pages("Glob", {"pattern": f"**/{pattern}"}):
            found += [line for line in text.splitlines() if line and not line.startswith("[")]
        return found

    def numbered(self, arguments):
        text = self.client.call("Read", arguments)
        return [hit[2] for hit in re.finditer(r"^ *(\d+)\t(.*)$", text, re.M)], text

    def read(self, path, first, count):
        lines, _ = self.numbered({"file_path": path, "offset": first, "limit": count})
        return "\n".join(lines)

    def read_all(self, path):
        lines, text = self.numbered({"file_path": path})
        while more := re.search(r"continue with offset (\d+)\]\s*$", text):
            rest, text = self.numbered({"file_path": path, "offset": int(more[1])})
            lines += rest
        return "\n".join(lines) + "\n"

    def read_end(self, path, count):
        return self.run(f"tail -n {count} {path}")[0]

    def edit(self, path, old, new, every=False):
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        if every:
            arguments["replace_all"] = True
        return self.unlocked(path, old, lambda: self.client.call("Edit", arguments))

    def write(self, path, content):
        return self.client.call("Write", {"file_path": path, "content": content})

    def unlocked(self, path, old, change):
        """A change that is refused until the file is read: tried again if the refusal shows it, else read."""
        try:
            return change()
        except Refused as refusal:
            if "Read it first" not in str(refusal) or "old_string not found" in str(refusal):
                raise
            start = old.splitlines()[0]
            if start not in str(refusal):
                line = self.find_text(re.escape(start), path)[0][1]
                self.read(path, max(1, line - 5), len(old.splitlines()) + 10)
            return change()

    def run(self, command):
        text = self.client.call("Bash", {"command": command})
        code = re.search(r"^exit: (\d+)$", text, re.M)
        return text, int(code[1]) if code else 0

    def test(self, command):
        if "pytest" in command:
            return self.client.call("run_tests", {})
        report = self.client.call("run_tests", {"path": command.split()[-1]})
        # The runner's words for the same.
        return report.replace(" 0 failed", " fail 0")

    def patch(self, diff):
        return self.client.call("ApplyPatch", {"patch": diff})

    def undo(self, path, old, new):
        """The file as it was committed: the tool `undo` takes the calls since back first, also those to be kept."""
        return self.client.call("git", {"operation": "checkout", "args": ["--", path]})

    def start(self, command):
        text = self.client.call("Bash", {"command": command, "run_in_background": True})
        return re.search(r"\b(job_\w+)", text)[1]

    def output(self, job):
        return self.client.call("BashOutput", {"shell_id": job, "wait_seconds": 1})

    def stop(self, job):
        return self.client.call("KillShell", {"shell_id": job})


class Carrel(CarrelFiles):
    """The default set, which has tools for symbols and undo."""

    name = "Carrel"

    @staticmethod
    def argv(program, root):
        return [program, "mcp", "--workspace", str(root)]

    def read_symbol(self, path, name):
        return self.symbol_source({"symbol": name, "file_path": path})

    def read_method(self, path, owner, name):
        return self.symbol_source({"symbol": f"{owner}.{name}", "file_path": path})

    def symbol_source(self, arguments):
        """Of several definitions, the refusal lists the lines; the last one is the implementation."""
        try:
            text = self.client.call("read_symbol", arguments)
        except Refused as refusal:
            line = re.findall(rf"{re.escape(arguments['file_path'])}:(\d+)", str(refusal))[-1]
            text = self.client.call("read_symbol", {**arguments, "line": int(line)})
        return "\n".join(hit[2] for hit in re.finditer(r"^ *(\d+)\t(.*)$", text, re.M))

    def callers(self, path, name, head):
        """Each line of the reply begins with the function around the use."""
        text = self.client.call("find_references", {"symbol": name, "file_path": path})
        found = re.findall(r"^ +\d+ (\S+): ", text, re.M)
        return sorted({place.split("::")[-1] for place in found if place != "(definition)"})

    def rename(self, path, old, new):
        """By the tool for it, and by text where no language server is installed."""
        try:
            self.client.call("rename_symbol", {"symbol": old, "new_name": new})
        except Refused as refusal:
            if "no language server" not in str(refusal):
                raise
            super().rename(path, old, new)
