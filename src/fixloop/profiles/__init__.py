"""The profiles, a package for each: its record, its protocol, and what commands and engine know of it."""
