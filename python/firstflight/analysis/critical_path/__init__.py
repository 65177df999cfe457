"""Critical paths: which requests a page load waited for, and on what they spent the PLT."""
