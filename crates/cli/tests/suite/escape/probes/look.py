# Looks into a process outside, and at what its environment says.
victim, canary = given["victim"], given["canary"].encode()


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def read(name):
    with open(f"/proc/{victim}/{name}", "rb") as file:
        file.read(1)


def read_memory(which):
    here = ctypes.create_string_buffer(8)
    local = Vector(ctypes.addressof(here), 8)
    # The program itself is mapped at one address or another; finding it takes the same right.
    remote = Vector(given["address"], 8)
    call(which, victim, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)


for name in ["environ", "auxv", "maps", "mem", "io", "stack"]:
    attempt(name, lambda: read(name))
for name in ["cwd", "exe", "root", "fd/0"]:
    attempt(name, lambda: os.readlink(f"/proc/{victim}/{name}"))
attempt("a descriptor", lambda: os.open(f"/proc/{victim}/fd/0", os.O_RDONLY))
attempt("its tree", lambda: os.listdir(f"/proc/{victim}/root/"))
attempt("process_vm_readv", lambda: read_memory("process_vm_readv"))
attempt("process_vm_writev", lambda: read_memory("process_vm_writev"))
attempt("ptrace", lambda: call("ptrace", 0x4206, victim, 0, 0))  # PTRACE_SEIZE
attempt("kcmp", lambda: call("kcmp", os.getpid(), victim, 2, 0, 0))
found = []
for entry in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        try:
            with open(f"/proc/{entry}/{name}", "rb") as file:
                if canary in file.read():
                    found.append(f"{entry}/{name}")
        except OSError:
            pass
# Its own command line has it, for it was told what to look for.
seen["found"] = [each for each in found if not each.startswith(f"{os.getpid()}/")]
