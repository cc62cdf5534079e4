# Reaches for services outside by every kind of socket.
AF_VSOCK, AF_ALG, AF_KEY, AF_XDP, SOCK_RAW = 40, 38, 15, 44, 3


def connect(family, address, kind=socket.SOCK_STREAM, protocol=0):
    with socket.socket(family, kind, protocol) as made:
        made.settimeout(5)
        made.connect(address)
        made.send(b"x")


def send(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as made:
        made.sendto(b"x", address)


def pair():
    """One end of a pair of datagram sockets can still be told to send elsewhere."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with near, far:
        near.sendto(b"x", given["abstract datagram"])


def resolve():
    try:
        socket.getaddrinfo("example.com", 80)
    except socket.gaierror as error:
        raise OSError(errno.EHOSTUNREACH, "name") from error


def make(family, kind, protocol=0):
    socket.socket(family, kind, protocol).close()


for name in ("abstract stream", "abstract datagram"):
    given[name] = "\0" + given[name]
attempt("tcp", lambda: connect(socket.AF_INET, ("127.0.0.1", given["tcp"])))
attempt("tcp6", lambda: connect(socket.AF_INET6, ("::1", given["tcp6"])))
attempt("tcp mapped", lambda: connect(socket.AF_INET6, ("::ffff:127.0.0.1", given["tcp"])))
attempt("tcp fast open", lambda: socket.socket(socket.AF_INET).sendto(
    b"x", socket.MSG_FASTOPEN, ("127.0.0.1", given["tcp"])))
attempt("mptcp", lambda: connect(socket.AF_INET, ("127.0.0.1", given["tcp"]), protocol=262))
outcome(lambda: send(socket.AF_INET, ("127.0.0.1", given["udp"])))
attempt("udp", lambda: make(socket.AF_INET, socket.SOCK_DGRAM))
attempt("abstract stream", lambda: connect(socket.AF_UNIX, given["abstract stream"]))
attempt("abstract datagram", lambda: send(socket.AF_UNIX, given["abstract datagram"]))
attempt("abstract datagram from a pair", pair)
attempt("path stream", lambda: connect(socket.AF_UNIX, given["path stream"]))
attempt("path datagram", lambda: send(socket.AF_UNIX, given["path datagram"]))
attempt("raw", lambda: make(socket.AF_INET, SOCK_RAW, socket.IPPROTO_ICMP))
attempt("raw6", lambda: make(socket.AF_INET6, SOCK_RAW, socket.IPPROTO_ICMPV6))
attempt("packet", lambda: make(socket.AF_PACKET, SOCK_RAW, 0x300))
attempt("netlink audit", lambda: make(socket.AF_NETLINK, SOCK_RAW, 9))
attempt("netlink generic", lambda: make(socket.AF_NETLINK, SOCK_RAW, 16))
attempt("vsock", lambda: make(AF_VSOCK, socket.SOCK_STREAM))
attempt("crypto", lambda: make(AF_ALG, socket.SOCK_SEQPACKET))
attempt("ipsec", lambda: make(AF_KEY, SOCK_RAW, 2))
attempt("xdp", lambda: make(AF_XDP, SOCK_RAW))
if given["elsewhere"]:
    attempt("dns", resolve)
    attempt("metadata service", lambda: connect(socket.AF_INET, ("169.254.169.254", 80)))
