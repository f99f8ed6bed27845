"""Results for programs and for browsers: JSON documents, and pages that open offline."""

from bellweight.report.write import report

__all__ = ["report"]
