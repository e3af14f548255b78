"""Failed jobs, grouped by the cause of their failures, so that one fault is looked at once."""
