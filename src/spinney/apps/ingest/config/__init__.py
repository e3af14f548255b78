"""What those who run the service have set: settings, profiles and storages; and what is opened by them once."""
