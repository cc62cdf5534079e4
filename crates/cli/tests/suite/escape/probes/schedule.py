# Changes how a process outside is scheduled, and what it may use. Gently, so that the control ends soon.
victim = given["victim"]
batch, lowest = os.sched_param(0), 2 << 13 | 7


def write(name, text):
    with open(f"/proc/{victim}/{name}", "w") as file:
        file.write(text)


attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, victim, 5))
attempt("policy", lambda: os.sched_setscheduler(victim, os.SCHED_BATCH, batch))
attempt("processors", lambda: os.sched_setaffinity(victim, {min(os.sched_getaffinity(0))}))
attempt("disk", lambda: call("ioprio_set", 1, victim, lowest))
attempt("limits", lambda: call("prlimit64", victim, 7, struct.pack("QQ", 64, 64), 0))
attempt("who is killed first", lambda: write("oom_score_adj", "1000"))
attempt("name", lambda: write("comm", "mine"))
