"""What the trace formats share: files, cells, rows, mistakes, gangs, and the account."""
