"""Rights: users and tokens, who makes a change, which verbs a caller may use on a job, and who may submit a type."""
