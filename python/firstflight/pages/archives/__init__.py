"""Archives: pages recorded with their requests and, mostly, their bodies."""
