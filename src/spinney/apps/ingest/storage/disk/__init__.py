"""A storage root on a file system."""
