"""What somebody does for all: leadership, the steps of sweeps, and finding out what a lost commit did."""
