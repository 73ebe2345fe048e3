"""How time passes: the compiled core, and the SimPy reference."""
