"""Critical paths: what a page load time was spent on, and by which requests."""
