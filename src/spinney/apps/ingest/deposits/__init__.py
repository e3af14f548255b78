"""What a deposit is, is described here: its order, identity, description, priority and state.

``orders``        the parameters of batches and objects, as jobs have them
``identities``    which object a deposit is: by its ARK, by local ids, or a new one; and who owns a stored version
``metadata``      who, what, when, where; as ERC and as Dublin Core
``priorities``    the priorities of a batch's objects
``states``        the state in which a batch is shown
``elements``      the data of an object's job that staff see
``early_checks``  checks of a manifest before anything is fetched
``url_queries``   the query strings of URLs, which may be signatures, kept out of parameters

Most of these are rules and data types. ``url_queries`` keeps a file in the batch's folder, ``identities`` reads the
inventory and the storage, ``elements`` reads jobs of the store.

Specified by ``tests/apps/ingest/test_orders.py``, ``tests/apps/ingest/test_identities.py``,
``tests/apps/ingest/test_metadata.py``, ``tests/apps/ingest/test_priorities.py``, ``tests/apps/ingest/test_states.py``
and ``tests/apps/ingest/manifests/test_foreseeing.py`` (early checks).
"""
