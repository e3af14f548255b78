"""Everything that people have beside submitting and running: a folder a feature, and in it what a newcomer looks for.

=============  ======================================================================
``model``      the feature's own values and rules, without I/O
``sql``        its part of the store: statements and transactions
``service``    its operations in somebody's name, with rights and audit
``api``        its routes of the REST API
``page``       its pages
``cli``        its commands
=============  ======================================================================

What the engine itself decides by (holds, schedules, webhooks …) has its values in ``spinney.model`` and what its
transactions need in ``spinney.store``; a feature never reaches into another one but downward in the order that
``pyproject.toml`` gives (import-linter).
"""
