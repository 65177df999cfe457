"""Reports for people, made from a results folder alone: tables, figures, a page, the file of the course."""
