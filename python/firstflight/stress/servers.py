"""How each server is started, as the laboratory wants it told."""

import shlex
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any

from firstflight.errors import UsageError
from firstflight.stress.plan import BUILT_IN, NGINX

_OBJECT = "object"
_CONF = "nginx.conf"

_NGINX = """\
user root;
daemon off;
master_process off;
error_log stderr error;
pid nginx.pid;
worker_rlimit_nofile 20000;
events {{ worker_connections 20000; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen 80 backlog={backlog} fastopen={qlen};
    root .;
  }}
}}
"""
"""One worker, as each processor of a server has one; without a master, which would want users that a
laboratory has not."""


def describe_server(server: str, *, size: int, backlog: int, qlen: int) -> dict[str, Any]:
    """A server as the laboratory's job holds it.

    Args:
        server: `builtin`, `nginx`, or a command.
        size: Bytes of the object it serves.
        backlog: Connections that may wait.
        qlen: Fast Open requests that may be pending.
    """
    if server == BUILT_IN:
        return {"kind": "builtin"}
    content = {_OBJECT: "x" * size}
    if server == NGINX:
        conf = _NGINX.format(backlog=backlog, qlen=qlen)
        return {"kind": "program", "argv": [NGINX, "-p", ".", "-c", _CONF], "files": {**content, _CONF: conf}}
    return {"kind": "program", "argv": shlex.split(server), "files": content}


def check_installed(servers: Iterable[str]) -> None:
    """Raises `UsageError` when a server's program is not there."""
    for server in servers:
        program = "" if server == BUILT_IN else shlex.split(server)[0]
        if program and not shutil.which(program):
            raise UsageError(
                f"server: there is no program {program}",
                "install your system's package" if server == NGINX else "name a program that is installed",
            )


def versions(servers: Iterable[str]) -> dict[str, str]:
    """Version of each server that has one to say."""
    if NGINX not in servers:
        return {}
    said = subprocess.run([NGINX, "-v"], capture_output=True, text=True, check=False).stderr
    return {NGINX: said.strip().rpartition("/")[2]}
