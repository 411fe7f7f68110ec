"""One file for each profile: which steps, in which order, as which canvas."""
