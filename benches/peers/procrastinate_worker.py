"""The process that does the jobs."""

import asyncio
import os

from procrastinate import App, PsycopgConnector

import rounds

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))


@app.task(name="nothing")
async def nothing():
    await asyncio.to_thread(rounds.say_done)


async def main():
    async with app.open_async():
        await app.run_worker_async(concurrency=10, install_signal_handlers=False)


asyncio.run(main())
