"""Recording pages: stock Chromium loads them, what crossed its wire becomes a WACZ.

Data flows `browse` -> `wire` -> `package` (with `har`); the command line calls
`browse.visit` and `package.write_wacz`.
"""
