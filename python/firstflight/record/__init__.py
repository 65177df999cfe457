"""Recording pages: stock Chromium loads them, what crossed its wire becomes a WACZ.

`session` is what the command line calls; data flows `browse` -> `netlog` -> `wire` -> `pairs` -> `package`.
"""
