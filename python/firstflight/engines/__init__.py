"""Engines make a planned load and return its record, one module per engine. `clients` are page loaders."""
