# Reads and writes each secret by every route there is to a path.


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def write(path):
    # Opening is the attempt; the control must leave `/etc/shadow` as it is.
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def from_directory(path):
    """Climbs from an open directory, further than any root is deep."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    found = os.open("../" * 40 + path.lstrip("/"), os.O_RDONLY, dir_fd=here)
    os.close(found)
    os.close(here)


def through_link(path):
    os.symlink(path, "link")
    try:
        read("link")
        write("link")
    finally:
        os.unlink("link")


def through_handle(path):
    """Opens the name alone, which is always allowed, and the file through `/proc`."""
    handle = os.open(path, os.O_PATH)
    try:
        read(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


parent = os.getppid()
ROUTES = {
    "read": read,
    "write": write,
    "climb": lambda path: read("../" * 40 + path.lstrip("/")),
    "climb from a descriptor": from_directory,
    "link": through_link,
    "handle": through_handle,
    "own root": lambda path: read("/proc/self/root" + path),
    "own root, upwards": lambda path: read("/proc/self/root/../.." + path),
    "own thread's root": lambda path: read("/proc/thread-self/root" + path),
    "own directory": lambda path: read("/proc/self/cwd/" + "../" * 40 + path.lstrip("/")),
    "root of the first process": lambda path: read("/proc/1/root" + path),
    "directory of the first process": lambda path: read("/proc/1/cwd/" + "../" * 40 + path),
    "root of the parent": lambda path: read(f"/proc/{parent}/root" + path),
}
for label, path in given["secrets"].items():
    seen[label] = {route: outcome(lambda: go(path)) for route, go in ROUTES.items()}
for label, path in given["directories"].items():
    attempt(label, lambda: os.listdir(path))
