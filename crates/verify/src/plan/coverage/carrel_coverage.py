"""Records with coverage.py which tests run which lines.

A plugin of pytest, and a command in place of `python -m unittest`. CARREL_COVERAGE names the directory for
the recording. Without coverage.py the tests run as usual.
"""

import os
import sys

DIRECTORY = os.environ.get("CARREL_COVERAGE", "")
OWNER = "CARREL_COVERAGE_PROCESS"
PIECE_BYTES = 8 << 20
PIECES = "abcdefgh"


class Recorder:
    """Measures the process, one context for each test."""

    def __init__(self):
        self.coverage = None
        self.problem = ""

    def start(self):
        try:
            import coverage
        except ImportError:
            self.problem = "coverage.py is not installed; install the package `coverage` beside the test runner"
            return
        try:
            self.coverage = begin(coverage)
        except Exception as error:
            self.problem = f"coverage.py did not start: {error}"

    def switch(self, test):
        if self.coverage is not None:
            try:
                self.coverage.switch_context(test)
            except Exception as error:
                self.problem = f"coverage.py did not switch to {test}: {error}"

    def finish(self):
        """Stops measuring and writes the part of this process."""
        rows = []
        if self.coverage is not None:
            try:
                self.coverage.stop()
                rows = list(recorded(self.coverage.get_data()))
            except Exception as error:
                self.problem = f"coverage.py left no data: {error}"
            self.coverage = None
        if self.problem:
            rows.append(row("!", self.problem))
        with open(os.path.join(DIRECTORY, f"part.{os.getpid()}"), "w", encoding="utf-8") as part:
            part.writelines(rows)


def begin(coverage):
    try:
        import coverage.tracer  # noqa: F401

        # The core of newer interpreters sees a line only once, in the first of the contexts.
        os.environ.setdefault("COVERAGE_CORE", "ctrace")
    except ImportError:
        pass
    measured = coverage.Coverage(data_file=None, config_file=False, source=[os.getcwd()])
    measured.set_option("run:disable_warnings", ["no-data-collected", "trace-changed"])
    measured.start()
    return measured


def recorded(data):
    """Yields the rows of each test, in the order of files."""
    tests = {}
    for file in sorted(data.measured_files()):
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                tests.setdefault(context, {}).setdefault(file, set()).add(line)
    for context, files in sorted(tests.items()):
        yield row(*split(context))
        for file, lines in files.items():
            yield row("F", file)
            yield row("L", ",".join(ranges(lines)))


def split(context):
    """Returns the fields of a test: its file for pytest, its module for unittest, and its name."""
    if "::" in context:
        return ["U", *context.split("::", 1)]
    parts = context.split(".")
    return ["T", ".".join(parts[:-2]), ".".join(parts[-2:])]


def ranges(lines):
    first = last = None
    # An empty file has the line 0.
    for line in sorted(line for line in lines if line > 0):
        if last is not None and line == last + 1:
            last = line
            continue
        if last is not None:
            yield f"{first}-{last}"
        first = last = line
    if last is not None:
        yield f"{first}-{last}"


def row(*fields):
    clean = [str(field).replace("\t", " ").replace("\n", " ").replace("\r", " ") for field in fields]
    return "\t".join(clean).encode("utf-8", "replace").decode("utf-8") + "\n"


def join():
    """Joins the parts of all processes, and cuts the whole into files that can be collected."""
    parts = sorted(name for name in os.listdir(DIRECTORY) if name.startswith("part."))
    whole = b""
    for name in parts:
        with open(os.path.join(DIRECTORY, name), "rb") as part:
            whole += part.read()
    whole += b"E\n"
    for number, letter in enumerate(PIECES):
        piece = whole[number * PIECE_BYTES : (number + 1) * PIECE_BYTES]
        if piece:
            with open(os.path.join(DIRECTORY, f"coverage.{letter}"), "wb") as file:
                file.write(piece)


def is_worker():
    return "PYTEST_XDIST_WORKER" in os.environ


def take():
    """Returns a recorder, unless this is a process or a session that a test started."""
    if not DIRECTORY or recorder is not None:
        return None
    if OWNER in os.environ and not is_worker():
        return None
    os.environ[OWNER] = str(os.getpid())
    return Recorder()


recorder = None
owner = None

try:
    import pytest
except ImportError:
    pytest = None

if pytest is not None:

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(early_config):
        global recorder, owner
        taken = take()
        if taken is None:
            return
        recorder, owner = taken, early_config
        # Two measurements in one process disturb each other, and thresholds are not the question here.
        if getattr(early_config.known_args_namespace, "cov_source", None):
            early_config.known_args_namespace.cov_source = None
        recorder.start()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(item):
        if item.config is owner:
            recorder.switch(item.nodeid)
        yield
        if item.config is owner:
            recorder.switch("")

    def pytest_sessionfinish(session):
        if session.config is owner:
            recorder.finish()

    def pytest_unconfigure(config):
        if config is owner and not is_worker():
            join()


def run_unittest():
    global recorder
    import unittest

    recorder = take()
    if recorder is not None:
        recorder.start()
        original = unittest.TestCase.run

        def run(self, result=None):
            recorder.switch(self.id())
            try:
                return original(self, result)
            finally:
                recorder.switch("")

        unittest.TestCase.run = run
    sys.argv[0] = "python -m unittest"
    try:
        unittest.main(module=None)
    finally:
        if recorder is not None:
            recorder.finish()
            join()


if __name__ == "__main__":
    run_unittest()
