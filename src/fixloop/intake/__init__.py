"""How a feature becomes a workflow: what is handed in, prepared, frozen and submitted."""
