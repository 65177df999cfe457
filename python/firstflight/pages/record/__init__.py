"""Records pages: unchanged Chromium loads them, and what crossed the wire becomes a WACZ.

Data flows `browse` -> `wire` -> `package` (with `har`). The command line calls `browse.visit` and
`package.write_wacz`.
"""
