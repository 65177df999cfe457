"""firstflight: a page-load laboratory for the first round trip."""
