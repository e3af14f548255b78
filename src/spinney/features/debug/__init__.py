"""Run a failed stage once more under a debugger, with copies of everything that it may change."""
