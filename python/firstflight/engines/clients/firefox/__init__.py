"""Firefox, the system's own: driven over WebDriver BiDi inside the laboratory.

Engines use `client`. `drive` is the program that runs in the laboratory; it imports as little as possible.
"""
