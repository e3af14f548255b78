"""Queues as operators see and set them: limits, pins, pauses, sharing."""
