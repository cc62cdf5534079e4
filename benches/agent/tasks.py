"""The twenty tasks: a goal, the steps of an agent, and the answer or the tree that it must end with.

The steps are those of an agent that knows its tools and not the project. Where agents misremember a text or
read what another then changes, the steps do so too. Answers were found with ripgrep, sed and an editor on
the unpacked archives; `changes` are plain replacements in them.
"""

import time
from dataclasses import dataclass, field
from typing import Callable

from client import Cannot, Refused

PYTEST = ".venv/bin/python -m pytest -q"


@dataclass
class Task:
    name: str
    project: str
    goal: str
    steps: Callable
    answer: object = None
    # Replacements (path, old, new) that make the tree which the agent finds; without old text: a new file.
    given: list = field(default_factory=list)
    # Replacements in that tree which make the one that the task must end with.
    changes: list = field(default_factory=list)
    agents: int = 1
    # The project's virtual environment has a type checker, which serves code intelligence too.
    type_checker: bool = False


def find_definition(agent):
    return agent.find_text(r"def augment_usage_errors\(")


def find_uses(agent):
    return agent.find_text(r"make_metavar\(", "src")


def find_files(agent):
    return sorted(agent.find_files("test_*.py"))


def count_hits(agent):
    return agent.count_text(r"runner\.invoke\(", "tests")


def read_function(agent):
    return agent.read_symbol("src/click/core.py", "forward")


def read_end(agent):
    return agent.read_end("CHANGES.rst", 5).strip("\n").splitlines()[-3:]


def edit_line(agent):
    agent.find_text("max_width = 80", "src/click")
    agent.edit("src/click/formatting.py", "            max_width = 80\n", "            max_width = 100\n")


IMPORT = "from click.testing import CliRunner\n"
NEW_IMPORT = "from click.testing import CliRunner as Runner\n"


def edit_files(agent):
    places = sorted({path for path, _ in agent.find_text("^from click.testing import CliRunner$")})
    for path in places:
        agent.edit(path, IMPORT, NEW_IMPORT)


def edit_ambiguous(agent):
    """The agent means the use in `get_usage_pieces`; its text is there three times."""
    path = "src/click/core.py"
    agent.find_text(r"def get_usage_pieces\(", path)
    try:
        agent.edit(path, "self.make_metavar()", "self.make_metavar().strip()")
    except Refused:
        agent.edit(path, "return [self.make_metavar()]", "return [self.make_metavar().strip()]")


WRONG = """def make_str(value: t.Any) -> str:
  if isinstance(value, bytes):
    try:
"""
RIGHT = """    if isinstance(value, bytes):
        try:
            return value.decode(sys.getfilesystemencoding())
"""
BETTER = """    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode(sys.getfilesystemencoding())
"""


def edit_misremembered(agent):
    """The agent writes the old text from memory, and it is not there like that."""
    path = "src/click/utils.py"
    try:
        agent.edit(path, WRONG, WRONG.replace("bytes)", "(bytes, bytearray))"))
    except Refused as refusal:
        if "return value.decode" not in str(refusal):
            try:
                line = agent.find_text(r"def make_str\(", path)[0][1]
            except Cannot:
                agent.read_all(path)
            else:
                agent.read(path, line, 8)
        agent.edit(path, RIGHT, BETTER)


def rename(agent):
    agent.rename("src/click/formatting.py", "FORCED_WIDTH", "FIXED_WIDTH")


WHOLE = """        if not self.required:
            var = f"[{var}]"
"""
BROKEN = WHOLE.replace("not ", "")


def fix_python(agent):
    report = agent.test(PYTEST)
    if "test_missing_arg" not in report:
        return "no failing test in the report"
    lines = [line for path, line in agent.find_text(r"def make_metavar\(", "src/click") if path.endswith("core.py")]
    agent.read("src/click/core.py", lines[-1], 12)
    agent.edit("src/click/core.py", BROKEN, WHOLE)
    return "628 passed" in agent.test(PYTEST)


def fix_javascript(agent):
    command = "node --test test/internals/req-id-gen-factory.test.js"
    report = agent.test(command)
    if "should have prefix" not in report:
        return "no failing test in the report"
    agent.find_text("nextReqId", "lib")
    agent.edit("lib/reqIdGenFactory.js", "`req${nextReqId", "`req-${nextReqId")
    report = agent.test(command)
    return "fail 0" in report


PATCH = """--- a/lib/noop-set.js
+++ b/lib/noop-set.js
@@ -41,5 +41,6 @@
     [Symbol.iterator]: function * () {},
     add () {},
     delete () {},
+    clear () {},
     has () { return true }
   }
--- a/lib/reqIdGenFactory.js
+++ b/lib/reqIdGenFactory.js
@@ -90,5 +91,5 @@
   const maxInt = 2147483647
 
-  let nextReqId = 0
+  let nextReqId = -1
   return function defaultGenReqId () {
     nextReqId = (nextReqId + 1) & maxInt
@@ -2,4 +2,4 @@
 function buildOptionalHeaderReqId (requestIdHeader, genReqId) {
   return function (req) {
-    return req.headers[requestIdHeader] || genReqId(req)
+    return req.headers[requestIdHeader] ?? genReqId(req)
   }
"""


def patch_wrong_lines(agent):
    agent.patch(PATCH)


def undo(agent):
    """Two changes, of which the first was a mistake."""
    agent.read("lib/noop-set.js", 1, 12)
    agent.edit("lib/noop-set.js", "add () {},", "add () { return this },")
    agent.read("lib/promise.js", 1, 12)
    agent.edit("lib/promise.js", "let res, rej", "let res = null, rej = null")
    agent.undo("lib/noop-set.js", "add () {},", "add () { return this },")


FLOOD = "node -e 'for (let i = 0; i < 400000; i++) console.log(\"line\", i); console.log(\"failed at 4711\"); process.exitCode = 3'"


def huge_output(agent):
    """A build that says at the end of its output what went wrong."""
    text, code = agent.run(FLOOD)
    if "failed at 4711" not in text:
        text, again = agent.run(f"{FLOOD} | tail -n 3")
        code = 3 if code is None else code
    return ["failed at 4711" in text, code]


def huge_line(agent):
    """A search in a tree that has a bundle with one line of two million characters."""
    return sorted(set(path for path, _ in agent.find_text("function buildRouting")))


def two_agents(first, second):
    """The first read the file before the second changed it, and then writes all of it."""
    path = "lib/noop-set.js"
    mine = first.read_all(path)
    second.read_all(path)
    second.edit(path, "delete () {},", "delete () { return false },")
    mine = mine.replace("add () {},", "add () { return this },")
    try:
        first.write(path, mine)
    except Refused:
        mine = first.read_all(path).replace("add () {},", "add () { return this },")
        first.write(path, mine)


BEAT = (
    "node -e 'let n = 0; setInterval(() => { n++; require(\"fs\").writeFileSync(\"beat.txt\", String(n)); "
    'if (n == 10) console.log("ready") }, 50)\''
)


def background(agent):
    """A server of the project: started, waited for, stopped."""
    job = agent.start(BEAT)
    text = ""
    for _ in range(20):
        text += agent.output(job)
        if "ready" in text:
            break
    agent.stop(job)
    time.sleep(0.5)
    beat = agent.root / "beat.txt"
    before = beat.read_text()
    time.sleep(0.5)
    stopped = beat.read_text() == before
    beat.unlink()
    return ["ready" in text, stopped]


MODULE = "def slug(text):\n    return '-'.join(text.lower().split())\n"
MODULE_TEST = "from click.slug import slug\n\n\ndef test_slug():\n    assert slug('A  b C') == 'a-b-c'\n"


def new_module(agent):
    agent.write("src/click/slug.py", MODULE)
    agent.write("tests/test_slug.py", MODULE_TEST)
    report = agent.test(f"{PYTEST} tests/test_slug.py")
    return "passed" in report


TEST_FILES = """
    arguments basic chain command_decorators commands compat context custom_classes defaults formatting imports
    info_dict normalization options parser shell_completion termui testing types utils
""".split()
# Of its lines without indentation.
CONTEXT_FORWARD = "sha256:3ea1d8a9eab12474a2d33cbf619b27f5dc3592393ad1fd8884c52ab29a2e6c7a"

TASKS = [
    Task("find-definition", "click", "Where is augment_usage_errors defined?", find_definition,
         answer=[("src/click/core.py", 98)]),
    Task("find-uses", "click", "Each line in src that calls or defines make_metavar.", find_uses,
         answer=[("src/click/core.py", line) for line in (2218, 2754, 3011, 3041, 3044)]),
    Task("find-files", "click", "All files named test_*.py.", find_files,
         answer=[f"tests/test_{name}.py" for name in TEST_FILES]),
    Task("count-hits", "click", "How many lines in tests call runner.invoke?", count_hits, answer=282),
    Task("read-function", "click", "The source of Context.forward in src/click/core.py.", read_function,
         answer=CONTEXT_FORWARD),
    Task("read-end", "click", "The last release in CHANGES.rst.", read_end,
         answer=["Released 2014-05-21", "", "-   Initial release."]),
    Task("edit-line", "click", "The greatest width of help is 100.", edit_line,
         changes=[("src/click/formatting.py", "            max_width = 80\n", "            max_width = 100\n")]),
    Task("edit-files", "click", "Import CliRunner as Runner in each file that imports it.", edit_files,
         changes=[(path, IMPORT, NEW_IMPORT) for path in ("tests/conftest.py", "tests/test_testing.py")]),
    Task("edit-ambiguous", "click", "Strip the metavar in Argument.get_usage_pieces.", edit_ambiguous,
         changes=[("src/click/core.py", "return [self.make_metavar()]", "return [self.make_metavar().strip()]")]),
    Task("edit-misremembered", "click", "make_str takes bytearrays too.", edit_misremembered,
         changes=[("src/click/utils.py", RIGHT, BETTER)]),
    Task("rename", "click", "FORCED_WIDTH is called FIXED_WIDTH.", rename, type_checker=True,
         changes=[(path, "FORCED_WIDTH", "FIXED_WIDTH")
                  for path in ("src/click/formatting.py", "src/click/testing.py")]),
    Task("fix-python", "click", "Tests fail; find the cause in the source and fix it.", fix_python, answer=True,
         given=[("src/click/core.py", WHOLE, BROKEN)], changes=[("src/click/core.py", BROKEN, WHOLE)]),
    Task("fix-javascript", "fastify", "The test of request ids fails; fix the source.", fix_javascript, answer=True,
         given=[("lib/reqIdGenFactory.js", "`req-${nextReqId", "`req${nextReqId")],
         changes=[("lib/reqIdGenFactory.js", "`req${nextReqId", "`req-${nextReqId")]),
    Task("patch-wrong-lines", "fastify", "Apply a diff whose line numbers are wrong.", patch_wrong_lines,
         changes=[("lib/noop-set.js", "    delete () {},\n", "    delete () {},\n    clear () {},\n"),
                  ("lib/reqIdGenFactory.js", "let nextReqId = 0", "let nextReqId = -1"),
                  ("lib/reqIdGenFactory.js", "[requestIdHeader] ||", "[requestIdHeader] ??")]),
    Task("undo", "fastify", "Change two files, then take the first change back.", undo,
         changes=[("lib/promise.js", "let res, rej", "let res = null, rej = null")]),
    Task("huge-output", "fastify", "Why did the build fail, and with which code?", huge_output, answer=[True, 3]),
    Task("huge-line", "fastify", "Which files define buildRouting?", huge_line,
         answer=["dist/bundle.js", "lib/route.js"],
         given=[("dist/bundle.js", None, "x=1;" * 250_000 + "function buildRouting(){}" + "y=2;" * 250_000)]),
    Task("two-agents", "fastify", "Two agents change different lines of one file.", two_agents, agents=2,
         changes=[("lib/noop-set.js", "add () {},", "add () { return this },"),
                  ("lib/noop-set.js", "delete () {},", "delete () { return false },")]),
    Task("background", "fastify", "Start a server, wait until it is ready, stop it.", background,
         answer=[True, True]),
    Task("new-module", "click", "Add a module with a test, and run the test.", new_module, answer=True,
         changes=[("src/click/slug.py", None, MODULE), ("tests/test_slug.py", None, MODULE_TEST)]),
]
