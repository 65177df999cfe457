"""Runs a command in a new network namespace, next to an HTTP server on every loopback address, port 8080.

Call: `unshare --map-root-user --net python fast_open_site.py SETTING QUEUE COMMAND ...`. SETTING is the value
of `net.ipv4.tcp_fastopen` in that namespace. QUEUE is the number of pending Fast Open requests that the
server allows; with 0 the server does not use Fast Open.
"""

import fcntl
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

_PORT = 8080
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


def main() -> int:
    setting, queue, *command = sys.argv[1:]
    with socket.socket() as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))
    Path("/proc/sys/net/ipv4/tcp_fastopen").write_text(setting)
    listener = socket.create_server(("::", _PORT), family=socket.AF_INET6, dualstack_ipv6=True)
    if int(queue):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, int(queue))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    return subprocess.run(command, check=False).returncode


def serve(listener: socket.socket) -> None:
    """Answers each request until `listener` is shut down."""
    while True:
        try:
            stream, _ = listener.accept()
        except OSError:
            return
        # A client may reset its connection.
        with stream, suppress(OSError):
            stream.recv(4096)
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")


if __name__ == "__main__":
    sys.exit(main())
