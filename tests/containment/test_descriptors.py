"""`exec` passes its program the standard streams only, not the descriptors of the job and of the answer."""

import os
import sys

import pytest
from program import Program

LIST = """
import os
print(*sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")))
"""


@pytest.mark.ordinary_user
def test_the_users_program_gets_the_standard_streams_and_nothing_else(program: Program) -> None:
    ended = program("exec", "--quiet", "--rtt", "2", "--", sys.executable, "-c", LIST)
    assert ended.out.split() == ["0", "1", "2"], ended.err


def test_the_list_shows_a_descriptor_that_is_left_open() -> None:
    reader, writer = os.pipe()
    try:
        os.set_inheritable(writer, True)
        pid = os.posix_spawn(
            "/bin/sh", ["sh", "-c", f"test -e /proc/self/fd/{writer}"], os.environ, file_actions=()
        )
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        os.close(reader)
        os.close(writer)
