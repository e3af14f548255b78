"""The rules for attempts say how a stage signals its outcome, why a job failed, and which stage is next.

``signals``         the exceptions by which a stage sets its outcome (``Fail``, ``Defer``, ``Hold`` …)
``progress``        the one rule for continuing, resuming, retrying and regrowing
``failures``        the fingerprint of a failure, which many jobs with one cause have in common
``plain_messages``  a failure's message without its numbers and paths, which the fingerprint is made of
``failure_groups``  failures counted by fingerprint, as operators read them
``error_texts``     how long a message and a traceback may be that are kept
``remarks``         what follows an attempt's message when some of its output is not in its files
``user_frames``     the part of a traceback that belongs to the application

A worker raises and catches ``signals``, in the process of the stage; the others are used by the store, inside the
transaction that records an attempt. Any node that takes a job up after a crash must come to the same next stage and the
same fingerprint, so none of these rules depends on a clock, a host or on what else a store contains.

Specified by ``tests/model/test_signals.py``, ``tests/model/test_progress.py``, ``tests/model/test_failures.py`` and
``tests/model/test_remarks.py`` (the rules), ``tests/contract/test_outcomes.py`` and ``tests/contract/test_failures.py``
(what a store does by them).
"""
