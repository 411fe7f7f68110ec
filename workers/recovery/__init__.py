"""What brings back what was lost: dead processes, lost hints, near deadlines, leftovers."""
