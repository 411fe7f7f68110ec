"""Report files of tools to failures, counts and evidence."""

from fixloop.reports.judging import judge
from fixloop.reports.limits import bound
from fixloop.reports.reading import KINDS, read_report
from fixloop.reports.report import Report, as_json

__all__ = ["KINDS", "Report", "as_json", "bound", "judge", "read_report"]
