#!/usr/bin/env python3
"""A language server for tests. It answers what `answers.json` of the project says.

Positions are [path, line, first character, character behind the last], counted from 0.

    edits        [[path, line, first, last], ...]: what a rename replaces by the new name
    operations   [[kind, path, new path], ...]: what it does to files
    moves        [[path, line, first, last, text], ...]: what new paths of files change
    means        [[path, line, character, path, line, first, last], ...]: definitions of uses
    uses         [[path, line, first, last], ...]: the references of everything
    work         [title, message, percentage]: work that never ends
    failure      what a project that cannot be loaded lacks
"""

import json
import os
import sys


def answers():
    with open("answers.json") as file:
        return json.load(file)


class Server:
    def __init__(self):
        self.root = ""

    def uri(self, path):
        return self.root.rstrip("/") + "/" + path

    def range(self, line, first, last):
        return {
            "start": {"line": line, "character": first},
            "end": {"line": line, "character": last},
        }

    def changes(self, edits):
        files = {}
        for path, line, first, last, text in edits:
            edit = {"range": self.range(line, first, last), "newText": text}
            files.setdefault(path, []).append(edit)
        document = lambda path: {"uri": self.uri(path), "version": None}
        return [
            {"textDocument": document(path), "edits": edits} for path, edits in files.items()
        ]

    def report(self, token, value):
        params = {"token": token, "value": {"kind": "begin"} | value}
        write({"jsonrpc": "2.0", "method": "$/progress", "params": params})

    def initialize(self, params):
        self.root = params["rootUri"]
        known = answers()
        if "work" in known:
            title, message, percentage = known["work"]
            work = {"title": title, "message": message, "percentage": percentage}
            self.report("work", work)
        if "failure" in known:
            self.report("failure", {"title": "Error", "message": known["failure"]})
        willRename = {"filters": [{"pattern": {"glob": "**"}}]}
        return {
            "capabilities": {
                "positionEncoding": "utf-8",
                "textDocumentSync": 1,
                "renameProvider": True,
                "definitionProvider": True,
                "referencesProvider": True,
                "workspace": {"fileOperations": {"willRename": willRename}},
            }
        }

    def rename(self, params):
        known = answers()
        name = params["newName"]
        changes = self.changes([edit + [name] for edit in known.get("edits", [])])
        for kind, old, new in known.get("operations", []):
            operation = {"kind": kind, "oldUri": self.uri(old), "newUri": self.uri(new)}
            changes.append(operation)
        return {"documentChanges": changes}

    def will_rename_files(self, params):
        return {"documentChanges": self.changes(answers().get("moves", []))}

    def definition(self, params):
        uri, position = params["textDocument"]["uri"], params["position"]
        asked = [position["line"], position["character"]]
        for path, line, character, target, target_line, first, last in answers().get("means", []):
            if uri == self.uri(path) and asked == [line, character]:
                return [{"uri": self.uri(target), "range": self.range(target_line, first, last)}]
        return []

    def references(self, params):
        place = lambda path, *range: {"uri": self.uri(path), "range": self.range(*range)}
        return [place(*use) for use in answers().get("uses", [])]

    def answer(self, method, params):
        known = {
            "initialize": self.initialize,
            "textDocument/rename": self.rename,
            "textDocument/definition": self.definition,
            "textDocument/references": self.references,
            "workspace/willRenameFiles": self.will_rename_files,
        }
        return known[method](params) if method in known else None


def read():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            return None
        if line == b"\r\n":
            return json.loads(sys.stdin.buffer.read(length))
        name, value = line.split(b":", 1)
        if name.lower() == b"content-length":
            length = int(value)


def write(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def main():
    server = Server()
    while (message := read()) is not None and message.get("method") != "exit":
        if "id" in message and "method" in message:
            result = server.answer(message["method"], message.get("params"))
            write({"jsonrpc": "2.0", "id": message["id"], "result": result})


if __name__ == "__main__":
    main()
