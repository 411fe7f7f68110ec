"""The store: one workflow, one hash, one script per change."""
