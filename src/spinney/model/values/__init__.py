"""Small values check and convert themselves here: names, durations, times, limits, paths, addresses.

``names``         which texts may be names, because they become parts of file names, pages and shell words
``lock_names``    templates with ``{parameter}`` fields, which become names of locks and subjects
``durations``     lengths of time as people write them, and as they are shown
``times``         points in time as people write them: so long ago, or a date
``limits``        limits of queues: a number of slots, or a percentage of all
``hints``         the nearest existing name, for messages about an unknown one
``paths``         where job folders, files beside a store and run-time directories are
``store_urls``    URLs of stores: what they name, and how they are shown without their password
``networks``      which addresses outgoing connections may reach, and which addresses count as one client
``products``      results for people, as entries in the data of a tree's root
``texts``         texts as both databases store them, and as people read them: a number with its noun
``lists``         one page of a list, or a whole one
``plain_json``    the JSON form of values that orjson does not know
``unreadable``    what stands for JSON of the database that cannot be read
``named_tuples``  many named tuples at a fraction of the usual cost

The functions that take what a person has written raise ``BadName`` or ``UsageError`` with a sentence that shows a valid
form. The others expect values that were checked.

Specified by ``tests/model/test_names.py``, ``tests/model/test_durations.py``, ``tests/model/test_networks.py``,
``tests/model/test_store_urls.py``, ``tests/define/test_products.py`` and ``tests/contract/test_unreadable.py``.
"""
