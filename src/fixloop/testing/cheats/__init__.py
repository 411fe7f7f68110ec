"""Scripted fixers that cheat, and honest ones, played through `fixloop run`: which of them end as passed, and how.

The corpus is the TOML files of this folder; `corpus` says what may stand in them.
"""
