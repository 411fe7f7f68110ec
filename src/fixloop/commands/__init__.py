"""The commands of `fixloop`: functions with their options; the table of program.py names them."""
