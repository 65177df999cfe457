"""The course's experiment: audits of its runs, answers to its questions, its table, and its hand-in files."""
