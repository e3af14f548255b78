"""Rules for attempts of stages: how a stage signals its outcome, the cause of a failure, which stage is next."""
