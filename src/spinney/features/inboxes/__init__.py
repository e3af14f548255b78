"""Inboxes: folders where people and programs drop files, each of which becomes a job."""
