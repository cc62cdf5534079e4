# A process outside that notes what reaches it. A line on stdin asks for the notes.
import os, signal, sys
received = []
for number in (signal.SIGURG, signal.SIGWINCH, signal.SIGUSR1, signal.SIGIO):
    signal.signal(number, lambda number, frame: received.append(signal.Signals(number).name))
me = lambda: [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0),
              len(os.sched_getaffinity(0))]
before = me()
print("ready", flush=True)
for line in sys.stdin:
    print(received, "as before" if me() == before else f"{before} became {me()}", flush=True)
