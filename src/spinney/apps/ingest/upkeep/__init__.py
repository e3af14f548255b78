"""Scheduled maintenance: the hourly cleanup and the daily fixity check."""
