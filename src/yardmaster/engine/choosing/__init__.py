"""Choosing among schedulers while time passes: what a chooser sees, does and earns."""
