"""The machine: processes and their owners, guarded commands, files, interpreters."""
