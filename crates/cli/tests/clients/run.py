"""Drives `carrel mcp` with clients that nobody here wrote, and prints one line per check.

    run.py --carrel PROGRAM --cache DIRECTORY [CLIENT…]

Clients: python, inspector, typescript, codex, forks, claude, gemini, opencode; all of them if none is named. Exits 0 only if every check passed.
`scripts/mcp-clients` installs what this needs.
"""

import argparse
import importlib.metadata
import subprocess
import sys

import anyio

import codex
import forks
import inspector
import lab
import listed
import python_sdk
import typescript

CLIENTS = ("python", "inspector", "typescript", "codex", "forks", *listed.CLIENTS)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--carrel", required=True)
    parser.add_argument("--cache", required=True, help="where npm installed the clients")
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    arguments = parser.parse_args()
    for client in arguments.clients:
        if client not in CLIENTS:
            parser.error(f"{client} is none of {', '.join(CLIENTS)}")
    return arguments


def main():
    arguments = parse()
    chosen = arguments.clients or CLIENTS
    version = subprocess.run([arguments.carrel, "--version"], capture_output=True, text=True, check=True)
    print(f"{version.stdout.strip()}: {arguments.carrel}", flush=True)
    report = lab.Report()
    place = lab.Lab(arguments.carrel)
    try:
        if "python" in chosen:
            print(f"\nPython SDK {importlib.metadata.version('mcp')}", flush=True)
            anyio.run(python_sdk.drive, report, place)
        if "inspector" in chosen:
            inspector.drive(report, place, arguments.cache)
        if "typescript" in chosen:
            typescript.drive(report, place, arguments.cache)
        if "codex" in chosen:
            codex.drive(report, place, arguments.cache)
        if "forks" in chosen:
            forks.drive(report, place, arguments.cache)
        for client in listed.CLIENTS:
            if client in chosen:
                listed.drive(report, place, arguments.cache, client)
    finally:
        place.close()
    return report.summary()


if __name__ == "__main__":
    sys.exit(main())
