"""The job types that nodes have registered."""
