"""What moves a job from one state to another, inside the caller's transaction: where it stands (``placement``),
its locks, what follows for parents and for those that need it (``cascades``), opening again (``regrowth``),
removal, an operator's verbs. Nothing here begins a transaction.
"""
