"""`fixloop serve`: the commands over HTTP and as pages, for people and programs elsewhere (decision 0054)."""
