"""Times of a queue: one job after the other, then many at once. Prints them as JSON.

A job says that it is over by adding a word to a list of Redis.
"""

import json
import os
import sys
import threading
import time

import redis

DONE = "bench:done"


def say_done():
    _redis().rpush(DONE, "1")


def _redis():
    local = _redis.__dict__
    if local.get("pid") != os.getpid():
        local["client"], local["pid"] = redis.from_url(os.environ["REDIS_URL"], socket_timeout=None), os.getpid()
    return local["client"]


def _wait(count):
    for _ in range(count):
        if _redis().blpop(DONE, timeout=60) is None:
            sys.exit("a job did not end within a minute")


def measure(submit):
    rounds, jobs, submitters = map(int, sys.argv[1:4])
    for _ in range(5):
        submit()
        _wait(1)
    micros = []
    for _ in range(rounds):
        begun = time.perf_counter()
        submit()
        _wait(1)
        micros.append((time.perf_counter() - begun) * 1e6)

    def several():
        for _ in range(jobs // submitters):
            submit()

    begun = time.perf_counter()
    threads = [threading.Thread(target=several) for _ in range(submitters)]
    for thread in threads:
        thread.start()
    _wait(jobs // submitters * submitters)
    per_second = jobs / (time.perf_counter() - begun)
    print(json.dumps({"micros": micros, "per_second": per_second}), flush=True)
