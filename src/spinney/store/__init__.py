"""A store keeps all jobs durably; this package says what every store must do, and ``sql`` is the one that does.

``contract``           the operations of a store and what each guarantees: the port that nodes and operators use
``parts``              the type of a whole store, with what each feature adds (``store.holds``, ``store.webhooks`` …),
                       imported when it is first used
``sql``                the contract on SQLite and PostgreSQL
``external_timeouts``  taking back attempts of external workers that are silent or overdue
``due_schedules``      creating the jobs of schedules that are due
``completion_names``   names for a shell's completion, read past the contract without opening a store
``skip_scan``          the statement by which a completion reads the distinct values of an index

Features write their statements in modules of their own, on ``sql``. All other code uses a store by ``contract`` and
``parts``, and gets one from ``sql.open_store``. A store object belongs to one thread at a time, and opens its
connections when it is first used. Each method is a transaction of its own: callers never see one, and cannot combine
two methods into one.

Specified by ``tests/contract`` (what every store must do; ``tests/contract/memory_model.py`` is a second, plain one for
comparison) and ``tests/store`` (what only this one does: plans of its statements, upgrades, waits).
"""
