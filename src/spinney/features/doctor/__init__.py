"""What must not be in a store, and its repair: rules over rows and folders, each found by its own statement."""
