"""Celery on Redis: two processes, results not kept."""

import os
import signal
import subprocess
import sys

from celery import Celery

import rounds

app = Celery("with_celery", broker=os.environ["REDIS_URL"])
app.conf.task_ignore_result = True


@app.task
def nothing():
    rounds.say_done()


if __name__ == "__main__":
    command = [sys.executable, "-m", "celery", "-A", "with_celery", "worker", "-c", "2", "-l", "ERROR"]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        rounds.measure(nothing.delay)
    finally:
        worker.send_signal(signal.SIGKILL)
