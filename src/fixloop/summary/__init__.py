"""The report on one feature: what was validated, how it went, and what the verdict rests on (U18).

`summarize` makes one frozen model of a workflow's state and history; the Markdown, the HTML page and the JSON are
three views of it. Nothing here is counted twice or copied from a text: every figure comes from the history.
"""

from fixloop.summary.assembly import Told, summarize
from fixloop.summary.model import Answer, Summary
from fixloop.summary.pages import as_html, as_markdown

__all__ = ["Answer", "Summary", "Told", "as_html", "as_markdown", "summarize"]
