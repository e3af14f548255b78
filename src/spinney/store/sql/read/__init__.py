"""Reading for people: lists, counts, filters, by the access path that the narrow tables and indexes give."""
