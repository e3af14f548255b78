"""A batch: its stages, what is kept of it outside of its job, and whether it kept its promises."""
