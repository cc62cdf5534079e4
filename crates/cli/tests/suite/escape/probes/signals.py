# Signals a process outside, by every call that sends one. What goes to everybody is harmless.
victim = given["victim"]


def by_descriptor():
    descriptor = call("pidfd_open", victim, 0)
    call("pidfd_send_signal", descriptor, int(signal.SIGUSR1), None, 0)


def by_ownership_of_a_pipe():
    """Has the kernel send the signal when a pipe becomes readable."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, victim)
    fcntl.fcntl(reader, 10, int(signal.SIGUSR1))
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writer, b"x")


attempt("probe", lambda: os.kill(victim, 0))
attempt("plain", lambda: os.kill(victim, signal.SIGUSR1))
attempt("thread", lambda: call("tgkill", victim, victim, int(signal.SIGUSR1)))
attempt("queued", lambda: call("rt_sigqueueinfo", victim, int(signal.SIGUSR1),
                               struct.pack("iiii112x", int(signal.SIGUSR1), 0, -1, 0)))
attempt("by descriptor", by_descriptor)
attempt("its group", lambda: os.killpg(victim, signal.SIGUSR1))
outcome(by_ownership_of_a_pipe)
if given["inside"]:
    outcome(lambda: os.kill(-1, signal.SIGURG))
if given["deadly"]:
    attempt("deadly", lambda: os.kill(victim, signal.SIGKILL))
    attempt("parent", lambda: os.kill(os.getppid(), signal.SIGKILL))
