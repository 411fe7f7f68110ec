"""Where Redis and the broker are, how they are reached, and the Redis that fixloop starts itself."""
