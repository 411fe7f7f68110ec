"""The profiles, one package each: its record, its protocol, and its side of the commands and the engine."""
