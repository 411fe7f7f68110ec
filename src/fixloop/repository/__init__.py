"""The user's repository: identity, snapshot, mirror, and returning the fixes."""
