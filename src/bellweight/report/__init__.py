"""Results for programs and for browsers: JSON documents, and pages that open offline."""
