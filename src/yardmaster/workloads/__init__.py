"""Where jobs come from: generated workloads, job tables and trace files."""
