"""
The `chat` profile: twin, architect and engineer talk only through numbered files in a directory.

`decision.decide` makes the decisions, without I/O and without a clock; `directory` reads and writes;
`rules.examine` checks a chat of any author.
"""
