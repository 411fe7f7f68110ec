"""What commands show of each profile, one module each; `view.py` says what that is."""
