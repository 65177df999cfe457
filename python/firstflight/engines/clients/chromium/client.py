"""Chromium as the laboratory's client."""

from firstflight.engines.clients.browser import Browser


class Chromium(Browser):
    """Loads pages in Chromium, or in a browser based on it."""

    driver = "firstflight.engines.clients.chromium.drive"
    libraries = ("playwright",)
