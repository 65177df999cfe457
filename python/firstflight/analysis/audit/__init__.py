"""Audits of published runs: what their tables hide, with the line it shows in."""

from firstflight.analysis.audit.audit import Audit, audit, audit_table
from firstflight.analysis.audit.course_run import CourseCell
from firstflight.analysis.audit.finding import KINDS, Finding
from firstflight.analysis.audit.printed import PrintedCell

__all__ = ["KINDS", "Audit", "CourseCell", "Finding", "PrintedCell", "audit", "audit_table"]
