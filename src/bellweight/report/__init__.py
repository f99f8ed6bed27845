"""Results for programs and for browsers: JSON documents, and pages that open offline.

The pages are made of the tables and charts that a result shows; nothing is computed here.
"""

from bellweight.report.write import report

__all__ = ["report"]
