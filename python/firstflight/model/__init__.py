"""What an experiment is made of: frozen data, no I/O; imports nothing of ours.

So far treatments live here; plan, path and units are to follow.
"""
