"""What fixloop does with this machine: processes and their owners, guarded commands, files, interpreters."""
