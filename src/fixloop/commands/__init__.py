"""The commands of `fixloop`: functions with their options; the table of cli.py names them."""
