"""What a fix may not choose: which files judge, and what in a difference is a question for a person."""
