"""The profiles as the engine knows them, one module each; `profile.py` says what that is (R1)."""
