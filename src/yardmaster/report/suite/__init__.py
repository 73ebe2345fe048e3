"""The report of an experiment: every table and figure, from the numbers of its runs alone."""
