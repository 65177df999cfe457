"""Measures a server with clients at a constant rate, and under floods of SYNs: plan, cells, run, rows."""

from firstflight.stress.plan import StressPlan
from firstflight.stress.run import Stress

__all__ = ["Stress", "StressPlan"]
