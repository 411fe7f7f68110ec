"""What a fix must not decide: which files judge it, and which parts of a diff need a person's decision."""
