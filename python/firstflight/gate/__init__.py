"""The gate: whether the head of a page is slower than its base, by loads on named networks, and budgets."""
