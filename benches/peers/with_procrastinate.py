"""procrastinate on PostgreSQL: one process, ten jobs at once."""

import os
import subprocess
import sys

from procrastinate import App, SyncPsycopgConnector

import rounds

connector = SyncPsycopgConnector(conninfo=os.environ["DATABASE_URL"])
app = App(connector=connector, import_paths=["with_procrastinate"])


@app.task(name="nothing")
def nothing():
    rounds.say_done()


if __name__ == "__main__":
    with app.open():
        app.schema_manager.apply_schema()
        program = [sys.executable, os.path.join(os.path.dirname(__file__), "procrastinate_worker.py")]
        worker = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            rounds.measure(lambda: nothing.defer())
        finally:
            worker.kill()
