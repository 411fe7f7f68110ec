"""Atomic files, locks between the processes of one machine, and the cache directory."""
