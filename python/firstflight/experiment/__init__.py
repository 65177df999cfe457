"""Runs an experiment: opens its pages, orders its loads, makes them, and resumes a stopped run."""
