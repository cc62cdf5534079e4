import ctypes
import errno
import fcntl
import json
import os
import platform
import signal
import socket
import struct
import sys

given = json.loads(sys.argv[1])
seen = {}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

# Numbers of system calls: x86_64 and aarch64, which share those from 424 on.
NUMBERS = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112),
    "clone": (56, 220), "creat": (85, None), "chmod": (90, None), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "fchmod": (91, 52), "fchmodat": (268, 53),
    "finit_module": (313, 273), "init_module": (175, 105), "ioctl": (16, 29),
    "ioperm": (173, None), "iopl": (172, None), "ioprio_set": (251, 30), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219),
    "mknod": (133, None), "mknodat": (259, 33), "modify_ldt": (154, None), "mount": (165, 40),
    "name_to_handle_at": (303, 264), "open": (2, None), "open_by_handle_at": (304, 265),
    "openat": (257, 56), "perf_event_open": (298, 241), "personality": (135, 92),
    "pivot_root": (155, 41), "prlimit64": (302, 261), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60),
    "reboot": (169, 142), "request_key": (249, 218), "rt_sigqueueinfo": (129, 138),
    "seccomp": (317, 277), "setdomainname": (171, 162), "sethostname": (170, 161),
    "setns": (308, 268), "settimeofday": (164, 170), "swapoff": (168, 225),
    "swapon": (167, 224), "syslog": (103, 116), "tgkill": (234, 131), "umount2": (166, 39),
    "unshare": (272, 97), "userfaultfd": (323, 282), "shmget": (29, 194),
    "pidfd_send_signal": (424,) * 2, "io_uring_setup": (425,) * 2, "io_uring_enter": (426,) * 2,
    "io_uring_register": (427,) * 2, "open_tree": (428,) * 2, "move_mount": (429,) * 2,
    "fsopen": (430,) * 2, "fsconfig": (431,) * 2, "fsmount": (432,) * 2, "fspick": (433,) * 2,
    "pidfd_open": (434,) * 2, "clone3": (435,) * 2, "openat2": (437,) * 2,
    "pidfd_getfd": (438,) * 2, "mount_setattr": (442,) * 2, "quotactl_fd": (443,) * 2,
    "memfd_secret": (447,) * 2, "fchmodat2": (452,) * 2,
}
COLUMN = 0 if platform.machine() == "x86_64" else 1


def number(name):
    """The number of a call here, or none if the architecture does not have it."""
    return NUMBERS[name][COLUMN]


def call(which, *arguments):
    """Makes a system call, by its name or its number."""
    plain = (int, type(None))
    wide = [ctypes.c_long(each or 0) if isinstance(each, plain) else each for each in arguments]
    which = number(which) if isinstance(which, str) else which
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(which), *wide)
    if result < 0:
        raise OSError(ctypes.get_errno(), "call")
    return result


def outcome(action):
    """What came of an action: the name of an error, or that it was done."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "done"


def attempt(label, action):
    seen[label] = outcome(action)


def in_child(action):
    """What came of an action that would change this process, or end it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, outcome(action).encode())
        os._exit(0)
    os.close(writer)
    told = os.read(reader, 64).decode()
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return told
