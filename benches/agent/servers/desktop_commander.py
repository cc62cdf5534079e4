"""Desktop Commander, with the home directory to itself so that its settings are its defaults."""

import re
import time
from pathlib import Path

from servers import Server


def undone(text):
    """Its texts that claim success where nothing was done."""
    return text.startswith(("Search content not found", "Expected ", "Error"))


class DesktopCommander(Server):
    name = "Desktop Commander"

    @staticmethod
    def argv(cache, root):
        return ["node", str(cache / "node_modules/@wonderwhy-er/desktop-commander/dist/index.js")]

    def at(self, path):
        return str(self.root / path)

    def search(self, arguments):
        """All results of a search: its first page, and the pages that it says are left."""
        text = self.client.call("start_search", arguments, failed=undone)
        session = re.search(r"session: (\S+)", text)[1]
        whole = "COMPLETED" in text and "more results" not in text
        while not whole:
            time.sleep(0.5)
            text = self.client.call("get_more_search_results", {"sessionId": session, "length": 1000})
            whole = "COMPLETED" in text
        return text

    def find_text(self, pattern, under="."):
        text = self.search(
            {
                "path": self.at(under),
                "pattern": pattern,
                "searchType": "content",
                "contextLines": 0,
                "ignoreCase": False,
            }
        )
        found = set()
        for path, line in re.findall(r"^📄 (/.*?):(\d+) - ", text, re.M):
            found.add((str(Path(path).relative_to(self.root)), int(line)))
        return sorted(found)

    def find_files(self, pattern):
        text = self.search({"path": str(self.root), "pattern": pattern, "searchType": "files"})
        return [str(Path(path).relative_to(self.root)) for path in re.findall(r"^📁 (/.*)$", text, re.M)]

    def body(self, arguments):
        text = self.client.call("read_file", arguments)
        return re.sub(r"^\[Reading[^\n]*\]\n\n", "", text), text

    def read(self, path, first, count):
        return self.body({"path": self.at(path), "offset": first - 1, "length": count})[0]

    def read_all(self, path):
        body, text = self.body({"path": self.at(path), "length": 100_000})
        return body

    def read_end(self, path, count):
        return self.body({"path": self.at(path), "offset": -count})[0]

    def edit(self, path, old, new, every=False):
        arguments = {"file_path": self.at(path), "old_string": old, "new_string": new}
        if every:
            arguments["expected_replacements"] = self.count_in(path, old)
        return self.client.call("edit_block", arguments, failed=undone)

    def count_in(self, path, text):
        """An agent knows the number from the search that it did before."""
        return (self.root / path).read_text().count(text)

    def write(self, path, content):
        return self.client.call(
            "write_file", {"path": self.at(path), "content": content, "mode": "rewrite"},
            failed=undone,
        )

    def run(self, command):
        text = self.client.call(
            "start_process", {"command": f"cd {self.root} && {command}\necho exit $?", "timeout_ms": 60_000}
        )
        while not (code := re.search(r"^exit (\d+)$", text, re.M)):
            job = int(re.search(r"PID (\d+)", text)[1])
            text += self.client.call("read_process_output", {"pid": job, "timeout_ms": 30_000})
        return text, int(code[1])

    def patch(self, diff):
        return self.run(f"git apply <<'END'\n{diff}END\n")

    def undo(self, path, old, new):
        return self.run(f"git checkout -- {path}")

    def start(self, command):
        text = self.client.call(
            "start_process", {"command": f"cd {self.root} && {command}", "timeout_ms": 1000}
        )
        return int(re.search(r"PID (\d+)", text)[1])

    def output(self, job):
        return self.client.call("read_process_output", {"pid": job, "timeout_ms": 1000})

    def stop(self, job):
        return self.client.call("force_terminate", {"pid": job})
