"""What runs as a command in a workspace: checks, fixers, agents."""
