"""A main agent that believes in comments: it changes a file each time and mends nothing."""

import os
from pathlib import Path

path = Path("calendar_rules.py")
iteration = os.environ["FIXLOOP_ITERATION"]
text = path.read_text(encoding="utf-8")
path.write_text(f"{text}# looked at it again, iteration {iteration}: should be fine now\n", encoding="utf-8")
