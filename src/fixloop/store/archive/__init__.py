"""The archive: ended workflows as compressed JSON Lines, outside Redis, still readable by the commands."""
