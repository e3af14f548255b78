"""The service of the objects' tests."""

from apps.ingest.objects.conftest import service, web

__all__ = ["service", "web"]
