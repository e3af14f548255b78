"""The command interface of Disbatch 4 is served here: the REST API that its clients use, and one page for browsers.

    spinney disbatch serve --mongo mongodb://host1,host2/?replicaSet=rs0 --database disbatch

``application``  ``make_interface``, which puts the routes together
``settings``     what an interface may do, and how its replies look
``service``      what all routes share: database, settings, the log of changes
``nodes``        routes of nodes, and what a monitoring system asks
``queues``       routes of queues and plugins
``tasks``        routes of tasks
``balancer``     routes of balancing, and the loop that applies it
``balance``      how many tasks each queue may run now, as pure rules
``actions``      what routes do with tasks: create, cancel, reset, clone
``parameters``   what a request asks for
``filters``      requests made filters of MongoDB, with listed operators only
``wire``         documents made replies
``access``       users, tokens, and protection from pages of other sites
``page``         the page
``cli``          its commands

It needs neither a store nor a node of Spinney: it is a server of its own on the MongoDB database. No value of a request
reaches the database as an operator that ``filters`` does not list.

Specified by ``tests/bridges/disbatch/test_interface.py``, ``tests/bridges/disbatch/test_interface_access.py``,
``tests/bridges/disbatch/test_filters.py`` and ``tests/bridges/disbatch/test_balance.py``.
"""
