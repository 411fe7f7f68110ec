"""Recovery: dead processes, lost hints, near deadlines, leftovers."""
