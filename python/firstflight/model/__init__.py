"""The data of an experiment: plan, treatments, paths, loads, and values with units.

Frozen data without I/O. Of firstflight it imports only errors.
"""
