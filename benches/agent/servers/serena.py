"""Serena with its default interface: a Python console whose objects are the tools."""

import ast
import json
import re

from client import Refused
from servers import Server

# The manuals that its tool description tells an agent to read before it uses these objects.
MANUALS = 's.info("fs", "edit", "shell", "lsp")'


def failed(text):
    return re.match(r"\w*(Error|Exception): ", text) is not None


class Serena(Server):
    name = "Serena"

    @staticmethod
    def argv(cache, root):
        program = str(cache / "serena/bin/serena")
        return [program, "start-mcp-server", "--project", str(root), "--enable-web-dashboard", "false"]

    def __init__(self, client, root):
        super().__init__(client, root)
        self.session = None
        manual = client.request("tools/call", {"name": "initial_instructions", "arguments": {}})
        manual = manual["content"][0]["text"]
        self.session = re.search(r"session id is `(\w+)`", manual)[1]
        arguments = {"session": self.session, "code": MANUALS}
        manuals = client.request("tools/call", {"name": "serena_repl", "arguments": arguments})
        self.manuals = len(manual.encode()) + len(manuals["content"][0]["text"].encode())

    def python(self, code):
        return self.client.call("serena_repl", {"session": self.session, "code": code}, failed=failed)

    def find_text(self, pattern, under="."):
        where = "" if under == "." else f", relative_path={under!r}"
        found = []
        text = self.python(f"s.fs.search_for_pattern({pattern!r}{where})")
        if text.startswith("The answer is too long"):
            search = f"s.fs.search_for_pattern({pattern!r}{where}).matches"
            text = self.python(f"repr([(m.source_file_path, m.start_line + 1) for m in {search}])")
            return ast.literal_eval(text)
        for path, places in json.loads(text).items():
            for place in places:
                found += [(path, int(line) + 1) for line in re.findall(r"^ *> *(\d+):", place, re.M)]
        return found

    def count_text(self, pattern, under="."):
        return int(self.python(f"len(s.fs.search_for_pattern({pattern!r}, relative_path={under!r}).matches)"))

    def find_files(self, pattern):
        return self.python(f"s.fs.find_file({pattern!r}, '.', skip_ignored_files=True)").splitlines()

    def read(self, path, first, count):
        return self.python(f"s.fs.read_file({path!r}, {first - 1}, {first + count - 2})")

    def read_all(self, path):
        return self.python(f"s.fs.read_file({path!r})")

    def read_end(self, path, count):
        return self.python(f"s.fs.read_file({path!r}, {-count})")

    def read_symbol(self, path, name):
        text = self.python(f"s.lsp.find_symbol({'Context/' + name!r}, relative_path={path!r}, include_body=True)")
        return json.loads(text)[0]["body"]

    def read_method(self, path, owner, name):
        """Overloads come in the order of the file, the implementation last."""
        text = self.python(f"s.lsp.find_symbol({f'{owner}/{name}'!r}, relative_path={path!r}, include_body=True)")
        return json.loads(text)[-1]["body"]

    def callers(self, path, name, head):
        found = f"s.lsp.find_referencing_symbols({name!r}, {path!r}).references"
        return ast.literal_eval(self.python(f"repr(sorted({{r.symbol.name for r in {found}}}))"))

    def change_signature(self, path, name, head, new_head, argument):
        self.python(f"s.lsp.find_referencing_symbols({name!r}, {path!r})")
        self.edit(path, head, new_head)
        needle, call = rf"(?<!fn )\b{name}\(([^()]*)\)", f"{name}($!1, {argument})"
        self.python(f"s.edit.replace_content({path!r}, {needle!r}, {call!r}, 'regex', True)")

    def edit(self, path, old, new, every=False):
        more = ", True" if every else ""
        return self.python(f"s.edit.replace_content({path!r}, {old!r}, {new!r}, 'literal'{more})")

    def write(self, path, content):
        return self.python(f"s.fs.create_text_file({path!r}, {content!r})")

    def run(self, command):
        text = self.python(f"s.shell.execute_shell_command({command!r})")
        if not text.startswith("{"):
            return text, None
        answer = json.loads(text)
        return answer["stdout"] + answer["stderr"], answer["return_code"]

    def patch(self, diff):
        text, code = self.run(f"git apply <<'END'\n{diff}END\n")
        if code:
            raise Refused(text)

    def rename(self, path, old, new):
        return self.python(f"s.lsp.rename_symbol({old!r}, {path!r}, {new!r})")

    def undo(self, path, old, new):
        return self.run(f"git checkout -- {path}")

    def start(self, command):
        text, _ = self.run(f"nohup {command} > .serena/job.log 2>&1 & echo $!")
        return int(text.split()[0])

    def output(self, job):
        return self.run("sleep 1; cat .serena/job.log")[0]

    def stop(self, job):
        return self.run(f"kill {job}")
