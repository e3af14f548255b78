"""Leadership, the steps of sweeps, and reconciliation after a lost commit."""
