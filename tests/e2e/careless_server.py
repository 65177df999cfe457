"""An HTTP server that breaks RFC 7413: its `tcp_fastopen` makes Linux accept SYN data without cookie."""

import socket
from pathlib import Path

from fast_open_site import serve

Path("/proc/sys/net/ipv4/tcp_fastopen").write_text(str(0x1 | 0x2 | 0x200))
listener = socket.create_server(("", 8080))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 64)
serve(listener)
