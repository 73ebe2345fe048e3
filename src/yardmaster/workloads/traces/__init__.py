"""Traces in their publishers' own formats: one file per format, and what they share."""
