"""The report on one feature: what was validated, the course, and the basis of the verdict (U18).

`summarize` builds one frozen model from a workflow's state and history; the Markdown, the HTML page and the JSON are
three views of it. No figure is counted twice or copied from a text: every one comes from the history.
"""

from fixloop.summary.assembly import Told, summarize
from fixloop.summary.model import Answer, Summary
from fixloop.summary.pages import as_html, as_markdown

__all__ = ["Answer", "Summary", "Told", "as_html", "as_markdown", "summarize"]
