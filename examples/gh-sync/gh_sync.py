"""Titles of issues from the chats of a project."""
