"""What operators and applications set once and the engine follows: holds, capacities, schedules, retention,
webhooks.
"""
