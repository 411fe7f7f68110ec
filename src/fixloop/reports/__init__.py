"""Report files of tools to failures, counts and evidence."""
