"""The job types that nodes have registered, as people read them.

``commands`` lists them and shows one with its stages, policy and the JSON schema of its parameters. A type is declared
by an application and registered by the nodes that load it; nothing here changes one, and no code of the application is
needed to read it.

Specified by ``tests/contract/test_registration.py`` (what nodes declare), ``tests/service/test_rights.py`` (who may
read it) and ``tests/server/api/test_resources.py`` (the routes).
"""
