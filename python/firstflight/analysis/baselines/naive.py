"""The naive model: what was measured without TFO, less one RTT per cold connection on its critical path."""

from __future__ import annotations

from firstflight.analysis.critical_path import CriticalPath


def naive_plt_ms(tcp: CriticalPath, mode: str) -> float:
    """The PLT, ms.

    Args:
        tcp: Critical path of a `tcp` load of the cell. The model knows nothing of pages and paths but this.
        mode: `tcp`, which is as it was measured, or `tfo`.
    """
    return tcp.plt_ms - (tcp.could_save_rtts_ms if mode == "tfo" else 0.0)
