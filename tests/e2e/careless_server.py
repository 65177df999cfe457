"""A server that breaks RFC 7413: it has its machine take data in a SYN whatever the cookie."""

import socket
from pathlib import Path

from fast_open_site import serve

Path("/proc/sys/net/ipv4/tcp_fastopen").write_text(str(0x1 | 0x2 | 0x200))
listener = socket.create_server(("", 8080))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 64)
serve(listener)
