"""What jobs, GPU types, nodes and clusters are: plain columns, checked once at the edge."""
