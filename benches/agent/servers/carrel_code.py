"""`carrel mcp` with all tools for code, and without any of them."""

import re

from client import Refused
from servers.carrel import Carrel


class CarrelFiles(Carrel):
    """The tools that know text alone."""

    name = "Carrel, files only"

    @staticmethod
    def argv(program, root):
        return [*Carrel.argv(program, root), "--tools", "files,shell,verify,git"]


class CarrelCode(Carrel):
    name = "Carrel"

    @staticmethod
    def argv(program, root):
        return [*Carrel.argv(program, root), "--tools", "default,code"]

    def rename_function(self, path, old, new):
        return self.client.call("rename_symbol", {"symbol": old, "new_name": new})

    def read_method(self, path, owner, name):
        """Of several definitions, the refusal lists the lines; the last one is the implementation."""
        arguments = {"symbol": f"{owner}.{name}", "file_path": path}
        try:
            text = self.client.call("read_symbol", arguments)
        except Refused as refusal:
            line = re.findall(rf"{re.escape(path)}:(\d+)", str(refusal))[-1]
            text = self.client.call("read_symbol", {**arguments, "line": int(line)})
        return body_of(text)

    def callers(self, path, name, head):
        """Each line of the reply begins with the function around the use."""
        text = self.client.call("find_references", {"symbol": name, "file_path": path})
        found = re.findall(r"^ +\d+ (\S+): ", text, re.M)
        return sorted({place.split("::")[-1] for place in found if place != "(definition)"})

    def where(self, question, pattern, sign, head):
        """Reads the hits in their order until one shows the sign."""
        text = self.client.call("search_code", {"query": question})
        for path, found in re.findall(r"^\d+\. (\S+?):\S+ (.+)$", text, re.M):
            names = re.match(r"(?:(\w+): )?(?:async )?function (\w+)", found)
            if not names:
                continue
            symbol = "::".join(name for name in names.groups() if name)
            if sign in self.client.call("read_symbol", {"symbol": symbol, "file_path": path}):
                return [path, names[1] or names[2]]
        return None

    def change_signature(self, path, name, head, new_head, argument):
        self.client.call("find_references", {"symbol": name, "file_path": path})
        change = {"file_path": path, "function_name": name, "new_signature": new_head}
        self.unlocked(path, head, lambda: self.client.call("change_function_signature", change))
        edit = {"op": "replace", "rule": f"{name}($A)", "replacement": f"{name}($A, {argument})"}
        self.client.call("code_edit", {"path": path, "edits": [edit]})


def body_of(text):
    return "\n".join(hit[2] for hit in re.finditer(r"^ *(\d+)\t(.*)$", text, re.M))
