"""A step, from the claim of its ticket to the hint of what follows, for every profile."""
