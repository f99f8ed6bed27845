"""Tables for people and for programs: one `Table`, three renderings."""

from bellweight.report.table import Column, Table, to_csv, to_text

__all__ = ["Column", "Table", "to_csv", "to_text"]
