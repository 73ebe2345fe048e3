"""Schedulers that choose among schedulers: trained choosers, bandits, and their menus."""
