"""What the pages share: the frame, templates, static files, forms, filters, charts and error pages.

``page_responses``     pages and parts made of templates, and redirects with a message
``forms``              fields of a form, buttons that perform a command, secrets that are shown once
``static_files``       scripts, styles and icons under addresses that bear their digest
``error_pages``        refusals as pages
``filters``            the filters of a list of jobs, in the address
``param_fields``       parameters of a job type as fields of a form
``options_form``       options of a job as fields of a form
``stages``             the stages of a job with their attempts, and which attempt a page speaks of
``timelines``          when something waited and ran, as bars
``charts``             small lines and bars as numbers for SVG
``time_charts``        charts over time as numbers for SVG
``tracebacks``         the message and the traceback of a failure, as frames, so that a page can fold those of libraries
``text_formats``       numbers, times and sizes as people read them
``request_coalescer``  one answer for many requests of the same moment

A page is rendered whole on the server and works without scripts. Its script (htmx) only adds to that: it watches the
topics that the page names, and when one has changed, fetches the page again as a part (``wants_part``) and merges it
into the document, so that focus and scroll position stay. A form is a POST that performs a command and redirects to a
page that says what became of it; a refused form is shown again with what was entered.

Templates escape every value. Pages load nothing from other hosts, and no inline script. Drawing is split from markup:
these modules compute numbers and words without I/O, and templates place them.

Specified by ``tests/server/pages/test_pages.py`` (frame, headers and rights), ``tests/server/pages/test_filters.py``
(filters), ``tests/server/pages/test_param_fields.py`` (fields of parameters), ``tests/server/pages/test_stages.py``
(stages), ``tests/server/pages/test_charts.py`` (small charts), ``tests/server/pages/test_activity.py`` (charts over
time and timelines), ``tests/server/pages/test_tracebacks.py`` (tracebacks), ``tests/server/pages/test_text_formats.py``
(numbers and times), ``tests/server/pages/test_request_coalescer.py`` (shared answers),
``tests/browser/test_live_pages.py`` (the script) and ``tests/browser/test_accessibility.py`` (screen readers, phones,
no scripts).
"""
