"""What people read: a table, figures, a page, the course's file. Made from a results folder alone."""
