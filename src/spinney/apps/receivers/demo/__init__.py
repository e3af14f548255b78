"""``make demo-receivers``: archives of five simulated receivers dropped into a folder, a bug that is opened and mended,
and what the uploader gets."""
