# Makes calls whose numbers mean something else to a filter that does not look: those of 32-bit
# programs and those of x32. Only x86_64 has them.
import mmap

UNSHARE, CLONE_NEWUSER = 310, 0x10000000


def by_interrupt():
    code = (b"\x53"  # push rbx
            + b"\xb8" + struct.pack("<I", UNSHARE)  # mov eax, UNSHARE
            + b"\xbb" + struct.pack("<I", CLONE_NEWUSER)  # mov ebx, CLONE_NEWUSER
            + b"\xcd\x80\x5b\xc3")  # int 0x80; pop rbx; ret
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    entry = ctypes.addressof(ctypes.c_char.from_buffer(page))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(entry)()
    if result < 0:
        raise OSError(-result, "call")


if platform.machine() == "x86_64":
    seen["int 0x80"] = in_child(by_interrupt)
    seen["x32"] = in_child(lambda: call(0x40000000 | number("unshare"), CLONE_NEWUSER))
    seen["x32 alone"] = in_child(lambda: call(0x40000000 | 521, 0))
    seen["upper half"] = in_child(lambda: call(number("unshare") | 1 << 32, CLONE_NEWUSER))
    seen["upper half of flags"] = in_child(lambda: call("unshare", CLONE_NEWUSER | 1 << 40))
