"""External workers: stages that other people's programs run through the API."""
