"""Failed jobs, grouped by the cause of their failures: one fault is one group, however many jobs it fails."""
