"""What commands show: results on stdout, progress on stderr, and pages that take the whole terminal.

``display``        tables, JSON, CSV and job output on stdout
``table_layout``   the widths of a table's columns
``screen``         the whole terminal, taken and given back, and the keys
``progress_line``  a line of progress on stderr

Text of users and jobs is escaped before it reaches a terminal.

Specified by ``tests/cli/test_display.py`` (what is printed), ``tests/cli/test_table_layout.py`` (narrow
tables), ``tests/cli/test_closed_streams.py`` (streams that are closed) and ``tests/cli/test_top_board.py`` (keys).
"""
