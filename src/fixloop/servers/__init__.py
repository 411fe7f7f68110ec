"""Redis and the broker: their addresses, connections, and the Redis that fixloop starts itself."""
