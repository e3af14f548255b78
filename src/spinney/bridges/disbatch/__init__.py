"""Spinney works as execution nodes of Disbatch 4 and as its command interface, on that system's own database.

The truth about tasks stays in the MongoDB database that nodes of the releases 4.0 to 4.4 may use at the same time.

``node``          the other side of a bridge: the node protocol
``claims``        tasks taken, within limits that hold over all nodes
``limits``        how many tasks a node may take, as pure rules
``registration``  the node's document, and the tasks of hosts that are gone
``results``       what a job's end means there: a status, and output
``output``        output as the releases keep it, in the document or in GridFS
``programs``      programs as plugins, after the contract of release 4.4
``settings``      ``disbatch.toml``, and over it a document of the database
``database``      the connection, the collections with their indexes, and the status codes of tasks
``cli``           the commands ``spinney disbatch``
``interface``     the REST API and the page of the command interface

A claim is a write of the protocol that MongoDB applies to each document at once, so that nodes of the releases and this
one never get the same task. Output is written under ids that follow from the claim, and a result only while the claim
still holds, so that a repeated report changes nothing.

Specified by ``tests/bridges/disbatch`` (against a real server).
"""
