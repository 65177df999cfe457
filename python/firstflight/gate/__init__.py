"""Is the head of a page slower than its base? Loads of both on paths by name, verdicts, budgets."""
