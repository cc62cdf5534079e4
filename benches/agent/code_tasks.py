"""Five tasks for code intelligence: a rename, a method, callers, a signature, a question.

They are made as the twenty others are: answers and trees were found with ripgrep, sed and an editor on the unpacked
archives, before a server was asked.
"""

from tasks import Task

C_FUNCTION = r"[A-Za-z_][^(;]*?(\w+)\([^;]*$"
JAVASCRIPT_FUNCTION = r"(?:async )?function (\w+)"


def rename_function(agent):
    agent.rename_function("src/click/globals.py", "resolve_color_default", "color_default")


def read_method(agent):
    return agent.read_method("src/click/core.py", "Context", "invoke")


def find_callers(agent):
    return agent.callers("sqlite3.c", "pagerUnlockDb", C_FUNCTION)


HEAD = "fn wildcard(input: &str) -> Option<(char, &str)>"
NEW_HEAD = "fn wildcard(input: &str, letters: bool) -> Option<(char, &str)>"


def change_signature(agent):
    agent.change_signature("src/parse.rs", "wildcard", HEAD, NEW_HEAD, "true")


QUESTION = "Where is a request body refused that is larger than the limit?"


def find_place(agent):
    """Agents that search for text try words of the question; they know the place by the error that it makes."""
    sign = "new FST_ERR_CTP_BODY_TOO_LARGE("
    return agent.where(QUESTION, r"(?i)body[^\n]*large", sign, JAVASCRIPT_FUNCTION)


# Of the implementation's lines without indentation; two overloads stand before it.
CONTEXT_INVOKE = "sha256:85892c2dab662a122ba3f7f647e7c4345aa246d1454ec95deba9095dcdc787eb"
PAGER_UNLOCK_CALLERS = """
    hasHotJournal pagerExclusiveLock pager_end_transaction pager_unlock sqlite3PagerCloseWal sqlite3PagerSetJournalMode
    sqlite3PagerSharedLock
""".split()

CODE_TASKS = [
    Task("rename-function", "click", "resolve_color_default is called color_default.", rename_function, type_checker=True,
         changes=[(f"src/click/{name}.py", "resolve_color_default", "color_default")
                  for name in ("exceptions", "globals", "termui", "utils")]),
    Task("read-method", "click", "The implementation of Context.invoke in src/click/core.py.", read_method,
         type_checker=True, answer=CONTEXT_INVOKE),
    Task("find-callers", "libsqlite3-sys", "Which functions of sqlite3.c call pagerUnlockDb?", find_callers,
         answer=PAGER_UNLOCK_CALLERS),
    Task("change-signature", "semver", "wildcard takes letters: bool, and each caller passes true.", change_signature,
         changes=[("src/parse.rs", HEAD, NEW_HEAD),
                  ("src/parse.rs", "wildcard(text)", "wildcard(text, true)"),
                  ("src/parse.rs", "wildcard(input)", "wildcard(input, true)")]),
    Task("find-place", "fastify", QUESTION, find_place, answer=["lib/contentTypeParser.js", "rawBody"]),
]
