"""Look at a failure after the fact: the frames that were kept of it, on the command line and on the job's page."""
