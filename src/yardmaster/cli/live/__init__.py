"""Commands on real machines."""
