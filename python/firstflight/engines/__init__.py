"""Engines take a planned load and give its record: one module per engine; `clients` are what loads pages."""
