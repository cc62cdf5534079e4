# Makes files that lend their owner, and devices, by every call that can. The control may be root, so
# the devices are harmless ones.
LENT = 0o4755
at = -100  # AT_FDCWD
for name in ("a", "b"):
    open(name, "w").close()
here = os.open("a", os.O_RDWR)


def if_there(label, name, *arguments):
    if number(name) is not None:
        attempt(label, lambda: call(name, *arguments))


if_there("chmod", "chmod", b"a", LENT)
attempt("chmod, group", lambda: os.chmod("a", 0o2755))
attempt("fchmod", lambda: call("fchmod", here, LENT))
attempt("fchmodat", lambda: call("fchmodat", at, b"a", LENT))
attempt("fchmodat2", lambda: call("fchmodat2", at, b"a", LENT, 0))
if_there("open", "open", b"c", os.O_CREAT | os.O_WRONLY, LENT)
attempt("openat", lambda: call("openat", at, b"d", os.O_CREAT | os.O_WRONLY, LENT))
attempt("openat without a name", lambda: call("openat", at, b".", os.O_TMPFILE | os.O_RDWR, LENT))
attempt("openat2", lambda: call(
    "openat2", at, b"e", struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, LENT, 0), 24))
if_there("creat", "creat", b"f", LENT)
if_there("mknod", "mknod", b"g", 0o100000 | LENT, 0)
attempt("mknodat", lambda: call("mknodat", at, b"h", 0o100000 | LENT, 0))
attempt("a character device", lambda: call("mknodat", at, b"i", 0o020666, os.makedev(1, 3)))
attempt("a block device", lambda: call("mknodat", at, b"j", 0o060666, os.makedev(7, 255)))
attempt("capabilities of a file", lambda: os.setxattr(
    "a", "security.capability", struct.pack("<IIIII", 0x2000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)))
attempt("an inode's flags", lambda: fcntl.ioctl(here, 0x40086602, struct.pack("i", 0x40)))
