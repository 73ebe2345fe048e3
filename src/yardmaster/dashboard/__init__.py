"""The dashboard: a local web server over a folder of runs, and the pages it serves."""
