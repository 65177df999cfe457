"""The course's experiment: audits of its runs, answers to its questions, its table, and what is handed in."""
