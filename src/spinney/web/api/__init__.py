"""What the routes of the REST API have in common: routes declared by a function's signature, types of requests and
answers, idempotency keys, examples for the OpenAPI document.
"""
