"""The configuration of an ingest service is read here: settings, profiles, and what a process opens by them.

``settings``        ``ingest.toml``: folders, storages, minters, mail, limits of downloads
``profiles``        the rules for one kind of deposits, a TOML file each
``open_resources``  the inventory and the storages that a process opens once and keeps

Settings and profiles are read anew when they are used, so that a corrected file is in force without a restart. A file
that cannot be read raises ``UsageError`` with the key; stages turn that into a wait and not into a failure
(``spinney.apps.ingest.admission``). A storage or an inventory that is missing is never made here, because its disk may
only not be mounted.

Specified by ``tests/apps/ingest/test_settings.py``, ``tests/apps/ingest/test_profiles.py`` and
``tests/apps/ingest/objects/test_away.py``.
"""
