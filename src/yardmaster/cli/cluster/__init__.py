"""`yardmaster cluster …`: one thin file per command."""
