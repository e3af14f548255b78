"""Rights: users and tokens, verbs and the states in which they are allowed, who may submit a job type."""
