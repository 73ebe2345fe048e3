"""Episodes drawn by number: windows of traces and synthetic jobs, on many clusters and loads."""
