"""Files that are whole at every moment, locks between the processes of one machine, and the cache directory."""
