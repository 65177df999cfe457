"""Firefox, the system's own: driven over WebDriver BiDi inside the laboratory.

`client` is what engines use; `drive` is the program that runs inside, and imports nothing it can do without.
"""
