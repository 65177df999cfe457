"""`python -m firstflight.record.driver RESULT < JOB`: Chromium's driver, which ends when its caller ends."""

import ctypes
import signal
import sys

from firstflight.clients.chromium.drive import main

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.exit(main(sys.argv[1:]))
