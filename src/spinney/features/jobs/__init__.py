"""Single jobs: lists, a job's page, and the verbs on it."""
