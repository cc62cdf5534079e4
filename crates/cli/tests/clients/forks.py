"""Real agents work in forks of one workspace at the same time: Codex processes, each with a model on loopback.

A first agent makes three forks, three agents work side by side, one in each, and a last one promotes a fork. The models
of the three wait for each other before each answer, so that no agent is ahead of the others: what one writes is
there when the others look.
"""

import concurrent.futures
import json
import subprocess
import threading

import codex
import lab
import provider

AGENTS = 3
KEY = "basket"

# Seconds that a model waits for the other two.
BARRIER_SECONDS = 2 * lab.PATIENCE

WRONG = "prices.length"
# The first two pass the test, and the last one does not.
MENDED = [
    "prices.reduce((sum, one) => sum + one, 0)",
    "prices[0] + prices[1]",
    "prices.length + 1",
]
VERDICTS = ["passed", "passed", "failed"]


class InStep(provider.Provider):
    """A model that answers when the models of the other agents are asked, too."""

    def __init__(self, replies, barrier):
        super().__init__(replies)
        self.barrier = barrier

    def reply(self, request):
        self.barrier.wait(BARRIER_SECONDS)
        return super().reply(request)


def work(number):
    """Returns the calls of one of the three agents, and what it must hear of each."""
    mine, others = f"note-{number}.md", [f"note-{other}.md" for other in range(AGENTS) if other != number]
    mended = MENDED[number]
    return [
        ("run_tests", {}, ["failed"], []),
        ("Read", {"file_path": "basket.js"}, [WRONG], []),
        ("Edit", {"file_path": "basket.js", "old_string": WRONG, "new_string": mended}, ["replaced 1"], []),
        ("Write", {"file_path": mine, "content": f"{mended}\n"}, [mine], []),
        ("run_tests", {}, [VERDICTS[number]], []),
        ("Bash", {"command": "cat basket.js; ls; git status --porcelain"}, [mended, mine], others),
        ("git", {"operation": "add", "args": ["--all"]}, [], []),
        ("git", {"operation": "commit", "args": ["-m", f"Attempt {number}"]}, [f"Attempt {number}"], []),
        ("git", {"operation": "log", "args": ["--oneline"]}, [f"Attempt {number}"], ["Attempt"]),
    ]


class Base:
    """A workspace of a root, with a repository whose test fails."""

    def __init__(self, place):
        self.place, self.root = place, place.directory("forks")
        self.carrel("workspace", "create", KEY, "--root", self.root)
        self.path = self.root / KEY
        for name, text in lab.NODE.items():
            (self.path / name).write_text(text)
        begin = "git init -q -b main && git config user.name Ann && git config user.email ann@example.org && git add -A && git commit -qm Begin"
        self.line(begin)

    def carrel(self, *words):
        command = [self.place.carrel, *map(str, words)]
        done = subprocess.run(command, env=self.place.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        lab.expect(done.returncode == 0, f"{command}: {done.stderr}{done.stdout}")
        return done.stdout

    def line(self, line):
        return self.carrel("exec", "--workspace", self.path, "--command", line)

    def keys(self):
        listed = json.loads(self.carrel("workspace", "ls", "--root", self.root, "--json"))
        return [one["key"] for one in listed["workspaces"]]


def over_stdio(path):
    """Returns the settings of an agent with a server of its own."""
    arguments = ["mcp", "--workspace", str(path), "--tools", "default,snapshot"]
    return "\n".join(
        ["[mcp_servers.carrel]", 'command = "carrel"', f"args = {json.dumps(arguments)}", *APPROVED]
    )


def over_http(url):
    """Returns the settings of an agent of a server that all agents share."""
    headers = f"http_headers = {{ Authorization = {json.dumps(lab.AUTHORIZATION)} }}"
    return "\n".join(["[mcp_servers.carrel]", f"url = {json.dumps(url)}", headers, *APPROVED])


APPROVED = ['default_tools_approval_mode = "approve"', "tool_timeout_sec = 600", "required = true"]


def run(place, cache, base, server, script, model_of=provider.Provider, fork=None):
    """Lets an agent work through a script; returns what it heard of each call."""
    named = {} if fork is None else {"workspace": fork}
    calls = [
        provider.call(number, codex.NAMESPACE, tool, {**arguments, **named})
        for number, (tool, arguments, *_) in enumerate(script)
    ]
    with model_of([*calls, provider.message("Done.")]) as model:
        codex.agent(place, cache, base.path, model, server)
        lab.expect(len(model.requests) == len(script) + 1, f"{len(model.requests)} requests")
        heard = codex.heard(model)
    for (tool, _, words, hidden), output in zip(script, heard, strict=True):
        for word in words:
            lab.expect(json.dumps(word)[1:-1] in output or word in output, f"{tool}: no {word!r} in {output}")
        for word in hidden:
            if word == "Attempt":
                lab.expect(output.count(word) == 1, f"{tool}: not one {word!r} in {output}")
            else:
                lab.expect(word not in output, f"{tool}: {word!r} in {output}")
    return heard


def side_by_side(place, cache, base, keys, settings, is_named):
    """Lets three agents work at the same time, one in each fork."""
    barrier = threading.Barrier(AGENTS)

    def one(number):
        fork = keys[number] if is_named else None
        try:
            return run(place, cache, base, settings(keys[number]), work(number), lambda replies: InStep(replies, barrier), fork)
        except Exception:
            # The others wait for nobody.
            barrier.abort()
            raise

    with concurrent.futures.ThreadPoolExecutor(AGENTS) as pool:
        return [future.result() for future in [pool.submit(one, number) for number in range(AGENTS)]]


def session(report, place, cache, title, base, settings, is_named):
    """`settings` makes those of an agent for a fork, or for the base if it is given none."""
    keys = [f"{KEY}.fork-{number + 1}" for number in range(AGENTS)]
    with report.check(title, "an agent makes three forks") as seen:
        heard = run(place, cache, base, settings(None), [("fork", {"count": AGENTS}, keys, [])])
        seen.append(heard[0])
    with report.check(title, "three agents change, test and commit in their forks at the same time") as seen:
        heard = side_by_side(place, cache, base, keys, settings, is_named)
        seen.append(f"{sum(map(len, heard))} calls, tests {', '.join(VERDICTS)}")
    with report.check(title, "nothing of it is in the base") as seen:
        found = base.line("cat basket.js; ls; git log --oneline; git status --porcelain")
        lab.expect(WRONG in found and "note-" not in found and "Attempt" not in found, found)
        seen.append(found)
    with report.check(title, "an agent compares the forks and promotes one") as seen:
        script = [
            ("fork_diff", {"fork": keys[0]}, [MENDED[0], "note-0.md"], ["note-1.md", "note-2.md"]),
            ("fork_diff", {"fork": keys[1], "against": keys[0]}, [MENDED[1], MENDED[0]], [MENDED[2]]),
            ("fork_promote", {"fork": keys[0]}, [f"promoted {keys[0]}", f"snapshot fork-{keys[1]}"], []),
            ("run_tests", {}, ["passed"], []),
            ("snapshot_list", {}, [f"fork-{keys[1]}", f"fork-{keys[2]}"], []),
        ]
        seen.append(run(place, cache, base, settings(None), script)[2])
    with report.check(title, "the base is what that agent made, and no fork is left") as seen:
        found = base.line("cat basket.js; ls; git log --format=%s; git status --porcelain")
        lab.expect(MENDED[0] in found and "note-0.md" in found, found)
        lab.expect("note-1.md" not in found and "note-2.md" not in found, found)
        lab.expect("Attempt 0\nBegin\n" in found, found)
        lab.expect(base.keys() == [KEY], base.keys())
        seen.append(found)


def drive(report, place, cache):
    print(f"\nCodex CLI {lab.installed(cache, '@openai/codex')}, three agents in three forks", flush=True)
    base = Base(place)
    # Each agent has a server of its own for its fork alone.
    own = lambda key: over_stdio(base.root / (key or KEY))  # noqa: E731
    session(report, place, cache, "forks stdio", base, own, is_named=False)
    base = Base(place)
    with report.check("forks http", "the server ends when it is told to"):
        with place.http(["--workspace", str(base.path), "--tools", "default,snapshot"]) as url:
            session(report, place, cache, "forks http", base, lambda _: over_http(url), is_named=True)
