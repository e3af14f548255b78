"""What runs by itself: the hourly cleanup and the daily fixity check."""
