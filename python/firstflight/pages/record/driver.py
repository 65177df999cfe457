"""Chromium's driver outside a laboratory.

Called as `python -m firstflight.pages.record.driver RESULT [WRITABLE...] < JOB`.

It ends when its caller ends. With folders WRITABLE it drops root's rights first, since Chromium has no
sandbox as root.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

from firstflight.engines.clients.chromium.browser import become_ordinary
from firstflight.engines.clients.chromium.drive import main

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    if os.geteuid() == 0 and sys.argv[2:]:
        # If this fails, the driver stays root and reports that there is no sandbox.
        become_ordinary(map(Path, sys.argv[2:]))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.exit(main(sys.argv[1:]))
