"""The queues before this layout are supported here: their records are read, listed, and moved into it.

``records``  a record: a status byte, a time, and a payload in one node
``payload``  what a record carries: Java properties, XML or JSON
``move``     a record moved into the layout, in one transaction with its deletion

A payload is parsed as data only: nothing is unpickled or deserialized into objects.

Specified by ``tests/bridges/merritt/test_legacy.py``.
"""
