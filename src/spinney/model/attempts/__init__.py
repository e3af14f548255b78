"""What is known of one attempt of a stage: how a stage says its outcome, what a failure's cause is, which stage is
next.
"""
