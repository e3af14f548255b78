"""What the routes of the REST API share: requests and answers in JSON, routes of commands, and their documentation.

``json_routes``       routes that read and write JSON strictly, and refuse parameters that they do not know
``command_routes``    routes that are made from commands
``command_progress``  commands that tell how far they are, as lines of JSON
``csv_lists``         lists as CSV, page by page
``request_types``     types of parameters and bodies for routes by hand, and the header ``Idempotency-Key``
``examples``          examples for the OpenAPI document

Most routes are not written: ``command_routes`` makes them from the fields, the docstring and the ``route`` of each
command, so that server, document and client cannot differ. Routes by hand (module ``api`` of a feature) exist where a
request or an answer is no JSON value: files, forms, lines, output.

Requests are checked strictly (no text for a number, no unknown field or parameter), because a filter with a typing
error must not list everything. Answers are not validated again when they are sent; the tests hold them to the document
instead.

Specified by ``tests/server/api/test_documented.py`` (what is answered against the document, for each role),
``tests/server/api/test_openapi.py`` (what generators of clients need), ``tests/server/api/test_csv.py`` (lists as CSV),
``tests/server/api/test_submissions.py`` (idempotency keys) and ``tests/commands/test_command.py`` (routes of commands).
"""
