# Makes system calls that no command needs. Their arguments are such that the control, which may be
# root outside, changes nothing: a path that does not exist, an address where nothing is, a flag that
# only the child has.
NOWHERE = 8  # an address that is never mapped
CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000, 0x20000000, 0x40000000
NAMESPACES = {"user": CLONE_NEWUSER, "mount": CLONE_NEWNS, "pid": CLONE_NEWPID,
              "net": CLONE_NEWNET, "ipc": 0x8000000, "uts": 0x4000000, "cgroup": 0x2000000}


def clone(flags):
    child = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def clone3():
    # The kernel looks at the size before it looks at anything else.
    call("clone3", NOWHERE, 1)


def join(name):
    with open(f"/proc/self/ns/{name}") as file:
        call("setns", file.fileno(), 0)


def handle():
    # A handle of the file whose name is known, as a program outside could have left it.
    found = struct.pack("Ii", 128, 0) + bytes(128)
    buffer, mount = ctypes.create_string_buffer(found), ctypes.c_int()
    call("name_to_handle_at", -100, given["handle_of"].encode(), buffer, ctypes.byref(mount), 0)
    here = os.open(".", os.O_RDONLY)
    os.close(call("open_by_handle_at", here, buffer, os.O_RDONLY))


GROUPS = {
    "namespaces": {
        **{f"unshare {name}": lambda flag=flag: call("unshare", flag)
           for name, flag in NAMESPACES.items()},
        **{f"clone {name}": lambda flag=flag: clone(flag) for name, flag in NAMESPACES.items()},
        "unshare time": lambda: call("unshare", 0x80),
        "clone3": clone3,
        "setns": lambda: join("uts"),
    },
    "mounts": {
        "mount": lambda: call("mount", b"/none", b"/none", None, 4096, None),
        "mount sysfs": lambda: call("mount", b"x", b"/none", b"sysfs", 0, None),
        "mount proc": lambda: call("mount", b"x", b"/none", b"proc", 0, None),
        "mount cgroup": lambda: call("mount", b"x", b"/none", b"cgroup", 0, None),
        "umount2": lambda: call("umount2", b"/none", 0),
        "pivot_root": lambda: call("pivot_root", b"/none", b"/none"),
        "chroot": lambda: call("chroot", b"/none"),
        "open_tree": lambda: os.close(call("open_tree", -100, b"/", 0)),
        "move_mount": lambda: call("move_mount", -1, b"", -1, b"", 0),
        "fsopen": lambda: os.close(call("fsopen", b"tmpfs", 0)),
        "fsconfig": lambda: call("fsconfig", -1, 0, None, None, 0),
        "fsmount": lambda: call("fsmount", -1, 0, 0),
        "fspick": lambda: call("fspick", -1, b"", 0),
        "mount_setattr": lambda: call("mount_setattr", -1, b"", 0, NOWHERE, 32),
        "open_by_handle_at": handle,
        "fanotify_init": lambda: os.close(call("fanotify_init", 0, 0)),
    },
    "kernel": {
        "io_uring_setup": lambda: call("io_uring_setup", 1, NOWHERE),
        "io_uring_enter": lambda: call("io_uring_enter", -1, 0, 0, 0, None, 0),
        "io_uring_register": lambda: call("io_uring_register", -1, 0, None, 0),
        "keyctl": lambda: call("keyctl", 0, -3, 0),
        "add_key": lambda: call("add_key", b"user", b"carrel-escape", b"x", 1, -2),
        "request_key": lambda: call("request_key", b"user", b"carrel-none", None, 0),
        "perf_event_open": lambda: call("perf_event_open", NOWHERE, 0, -1, -1, 0),
        "userfaultfd": lambda: os.close(call("userfaultfd", 1)),
        "bpf": lambda: call("bpf", 5, NOWHERE, 8),
        "ptrace": lambda: call("ptrace", 0x4206, 2**22 + 1, 0, 0),
        "kcmp": lambda: call("kcmp", os.getpid(), os.getpid(), 2, 0, 0),
        "pidfd_getfd": lambda: call("pidfd_getfd", -1, 0, 0),
        "openat2": lambda: call("openat2", -100, b"/", NOWHERE, 24),
        "memfd_secret": lambda: os.close(call("memfd_secret", 0)),
        "personality": lambda: call("personality", 0x400000),
        "another filter's listener": lambda: call("seccomp", 1, 8, NOWHERE),
        "of the future": lambda: call(600),
    },
    "machine": {
        "reboot": lambda: call("reboot", 0, 0, 0, None),
        "kexec_load": lambda: call("kexec_load", 0, 2**20, NOWHERE, 0),
        "kexec_file_load": lambda: call("kexec_file_load", -1, -1, 0, NOWHERE, 0),
        "init_module": lambda: call("init_module", NOWHERE, 0, NOWHERE),
        "finit_module": lambda: call("finit_module", -1, NOWHERE, 0),
        "delete_module": lambda: call("delete_module", NOWHERE, 0),
        "swapon": lambda: call("swapon", b"/none", 0),
        "swapoff": lambda: call("swapoff", b"/none"),
        "acct": lambda: call("acct", b"/none"),
        "quotactl": lambda: call("quotactl", 0x800007 << 8, b"/none", 0, None),
        "syslog": lambda: call("syslog", 10, None, 0),
        "settimeofday": lambda: call("settimeofday", NOWHERE, None),
        "clock_settime": lambda: call("clock_settime", 0, NOWHERE),
        "clock_adjtime": lambda: call("clock_adjtime", 0, NOWHERE),
        "sethostname": lambda: call("sethostname", NOWHERE, 1),
        "setdomainname": lambda: call("setdomainname", NOWHERE, 1),
    },
}
for label, action in GROUPS[given["group"]].items():
    seen[label] = in_child(action)
