"""What commands bring to each profile, one module each; `door.py` says what that is."""
