"""What a deposit is, is described here: its order, identity, description, priority and state.

``orders``             the parameters of batches and objects, as jobs have them
``identities``         which object a deposit is: by its ARK, by local ids, or a new one; and who owns a stored version
``metadata``           who, what, when, where; as ERC and as Dublin Core
``priorities``         the priorities of a batch's objects
``states``             the state in which a batch is shown
``early_checks``       checks of a manifest before anything is fetched
``unchanged_objects``  the objects of a batch whose content was stored already
``url_queries``        the query strings of URLs, which may be signatures, kept out of parameters

Most of these are rules and data types. ``unchanged_objects`` and ``url_queries`` keep files in the batch's folder, and
``identities`` reads the inventory and the storage.

Specified by ``tests/apps/ingest/test_orders.py``, ``tests/apps/ingest/test_identities.py``,
``tests/apps/ingest/test_metadata.py``, ``tests/apps/ingest/test_priorities.py``, ``tests/apps/ingest/test_states.py``
and ``tests/apps/ingest/manifests/test_foreseeing.py`` (early checks).
"""
