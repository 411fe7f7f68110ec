"""How a worker's processes are started, told to stop, and known to live."""
