# Opens what belongs to the kernel. Nothing is written: that it opens is enough, and the control may
# be root.
def opened(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))


for label, path in given["write"].items():
    attempt(label, lambda: opened(path, os.O_WRONLY))
for label, path in given["read"].items():
    attempt(label, lambda: opened(path, os.O_RDONLY))
