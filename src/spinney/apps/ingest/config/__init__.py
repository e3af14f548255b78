"""Configuration: settings, profiles and storage targets; and the resources that a process opens once."""
