"""A server under a constant rate of clients, and under floods of SYNs: plan, cells, run, rows."""

from firstflight.stress.plan import StressPlan
from firstflight.stress.run import Stress

__all__ = ["Stress", "StressPlan"]
