"""Properties of who is next and when."""
