"""
The `chat` profile: twin, architect and engineer talk through numbered files in a directory, and through nothing else.

`decision.decide` says what follows from an event, without I/O and without a clock; `directory` reads and writes;
`rules.examine` judges a chat by any author.
"""
