"""Chromium, the system's own: driven by Playwright inside the laboratory."""
