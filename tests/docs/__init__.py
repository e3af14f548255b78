"""Pages of documentation: whatever they say and show is tried."""
