"""Applications that come with Spinney are in this package; each is built as anybody's application would be.

``ingest``           a deposit service for a digital library, from manifest to report
``monitor``          network services checked around the clock, by programs in any language
``receivers``        archives of radio receivers, made into detections of tags
``sample``           what ``spinney up`` runs where no application is named
``settings_tables``  what the settings files of the applications have in common

An application uses the public modules (``spinney``, ``spinney.jobs``, ``spinney.operations``, ``spinney.command_line``,
``spinney.routes``, ``spinney.pages``, ``spinney.tables`` …) and none of the engine's own packages, which the import
rules in ``pyproject.toml`` enforce: what is missing there for one of these is missing for everybody. Their commands,
routes and pages are found by entry points, so that servers and the command line name none of them but ``sample``.

Specified by ``tests/apps``; ``tests/docs/test_tutorial.py`` and ``tests/docs/test_application_guide.py`` specify how an
application of somebody else is made.
"""
