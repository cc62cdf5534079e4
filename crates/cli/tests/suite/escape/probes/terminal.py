# Types into terminals: the operator's, if it can be found, and one of its own.
import termios

TIOCLINUX = 0x541C
OWN = os.O_RDWR


def typed(terminal):
    fcntl.ioctl(terminal, termios.TIOCSTI, b"x")


def at(path):
    descriptor = os.open(path, OWN)
    typed(descriptor)


def own():
    """A terminal that it opens becomes the terminal of its session."""
    near, far = os.openpty()
    at(os.ttyname(far))


seen["are terminals"] = [os.isatty(number) for number in range(3)]
attempt("controlling terminal", lambda: at("/dev/tty"))
if given["terminal"].startswith("/dev/pts/"):
    attempt("operator's terminal", lambda: at(given["terminal"]))
if given["own"]:
    attempt("own terminal", own)
for number in range(3):
    attempt(f"TIOCSTI {number}", lambda: typed(number))
attempt("TIOCLINUX", lambda: fcntl.ioctl(0, TIOCLINUX, b"\x02"))
attempt("TIOCSETD", lambda: fcntl.ioctl(0, termios.TIOCSETD, struct.pack("i", 2)))
