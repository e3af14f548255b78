"""Local folders: which host has a job's folder, letting go of it, files fetched through the store."""
