"""Scripted fixers, cheating and honest ones, played through `fixloop run`, to see which of them pass.

The corpus is the TOML files of this folder; `corpus` defines their format.
"""
