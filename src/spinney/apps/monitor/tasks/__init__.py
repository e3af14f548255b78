"""Tasks: files in a folder, run for each service in the order of their names.

A task is a program in any language, or a Python module. A program answers ``identify`` by a line ``{name}
{description}``, and is run as ``PROGRAM "gid|url|uuid|type|version" TMPDIR DATADIR``; it prints its result as a Tcl
list ``status code info data timestamp``, as the scripts of the SNIG services monitor do, or as a JSON object. A module
has ``NAME``, ``DESCRIPTION`` and a function ``check(service, context)`` that returns a ``Finding``.

``task_list`` reads the folder · ``programs`` runs a program · ``modules`` loads a module · ``tcl_list`` Tcl's lists ·
``findings`` what a task found."""
