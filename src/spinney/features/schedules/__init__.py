"""Jobs that are made again and again, by a cron expression or an interval."""
