"""`carrel mcp` with all tools for code."""

import re

from servers.carrel import Carrel


class CarrelCode(Carrel):
    @staticmethod
    def argv(program, root):
        return [*Carrel.argv(program, root), "--tools", "default,code"]

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

