"""Pages for people: the private report of a release, and the public page of its certificate."""

from microveil.show.report.build import (
    certificate_page,
    report,
    write_certificate_page,
    write_report,
)

__all__ = ["certificate_page", "report", "write_certificate_page", "write_report"]
