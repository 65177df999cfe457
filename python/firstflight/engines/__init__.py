"""Engines take a planned load and give back its record. One module per engine."""
