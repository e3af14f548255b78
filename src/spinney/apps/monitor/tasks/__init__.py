"""Tasks are files in a folder, run for each service in the order of their names.

A task is a program in any language, or a Python module. A program answers ``identify`` by a line ``{name}
{description}``, and is run as ``PROGRAM "gid|url|uuid|type|version" TMPDIR DATADIR``; it prints its result as a Tcl
list ``status code info data timestamp``, as the scripts of the SNIG services monitor do, or as a JSON object. A module
has ``NAME``, ``DESCRIPTION`` and a function ``check(service, context)`` that returns a ``Finding``.

``task_list``        the folder read, and the names that tasks give themselves
``programs``         a program run as a task, with bounded output and time
``modules``          a Python module as a task
``identify_module``  a module asked for its name, in a process of its own
``findings``         what a task found, and how a program prints it
``tcl_list``         lists as Tcl writes them

Whatever a program prints or does becomes a finding about the service or an error of the task, and never an exception in
the worker. Only what the machine itself lacks (memory, processes, open files) is raised, so that the stage is tried
again.

The list of tasks is kept in the file ``tasks.json``, written whole or not at all. Nodes, pages and commands of one host
read it; whoever finds a changed file in the folder identifies it anew. A lost list is made again by asking all files.

Specified by ``tests/apps/monitor/test_programs.py``, ``tests/apps/monitor/test_tcl_list.py`` and
``tests/apps/monitor/test_task_page.py`` (the examples of the guide)."""
