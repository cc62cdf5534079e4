# Tries to become somebody else.
attempt("setuid", lambda: os.setuid(0))
attempt("setgid", lambda: os.setgid(0))
attempt("setresuid", lambda: os.setresuid(0, 0, 0))
attempt("setreuid", lambda: os.setreuid(0, 0))
attempt("setgroups", lambda: os.setgroups([0]))
attempt("chown", lambda: os.chown(".", 0, 0))
with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
for field in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp"):
    seen[field] = status[field].lstrip("0") or "0"
with open("/proc/self/uid_map") as file:
    seen["kernel's user"] = [int(line.split()[1]) for line in file]
seen["user"] = os.getresuid()
seen["groups"] = os.getgroups()
