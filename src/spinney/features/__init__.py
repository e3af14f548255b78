"""Everything that people have beside submitting and running: a folder a feature, and in it what a newcomer looks for.

=============  ======================================================================
``sql``        its part of the store: statements and transactions
``commands``   what people ask of it, each as a value: routes, client and both command lines come from it
``service``    its operations in somebody's name, where they are not commands yet; then ``api`` has the routes
``page``       its pages
``cli``        its part of the command line
=============  ======================================================================

What the engine itself decides by (holds, schedules, webhooks …) has its values in ``spinney.model`` and what its
transactions need in ``spinney.store``; a feature never reaches into another one but downward in the order that
``pyproject.toml`` gives (import-linter).
"""
