"""State transitions of jobs, inside the caller's transaction: the state of an open job (``placement``), its locks, the
effects on parents and dependants (``cascades``), opening again (``regrowth``), removal, an operator's verbs. These
modules begin no transaction."""
