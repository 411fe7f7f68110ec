"""Starting and stopping a worker's processes, and knowing whether they live."""
