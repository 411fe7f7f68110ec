"""The user's repository: identity, snapshot, mirror and the way back."""
