"""Commands that run in a workspace: checks, fixers, agents."""
