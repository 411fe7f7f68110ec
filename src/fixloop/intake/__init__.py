"""Intake: how a feature that was submitted is prepared, frozen and becomes a workflow."""
