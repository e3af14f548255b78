"""What every route and page needs: who sends the request and with which rights, a store for its thread, quotas,
bodies, problem responses, event streams, sign-in. Routes and pages stand with their features;
``spinney.server`` puts them together.
"""
