"""The archive: ended workflows as compressed JSON Lines, outside Redis and still read by the commands."""
