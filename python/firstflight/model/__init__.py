"""What an experiment is made of: plan, treatments, paths, loads, and values with units.

Frozen data, no I/O; imports nothing of ours but errors.
"""
