"""The named files of cycles and handoffs: written from the state, read back, and used to rebuild Redis."""
