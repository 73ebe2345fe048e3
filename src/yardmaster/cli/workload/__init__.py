"""`yardmaster workload …`: one thin file per command."""
