"""A storage root in an S3 bucket."""
