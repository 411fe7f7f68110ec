"""Turns tools' report files into failures, counts and evidence."""

from fixloop.protocol.limits import bound
from fixloop.reports.reader import KINDS, read_report
from fixloop.reports.report import Report, as_json
from fixloop.reports.verdict import judge

__all__ = ["KINDS", "Report", "as_json", "bound", "judge", "read_report"]
