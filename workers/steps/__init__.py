"""Executes a step of any profile, from claiming its ticket to hinting the next one."""
