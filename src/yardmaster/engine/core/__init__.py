"""The compiled core: scalar functions over the two arrays of a simulation's state."""
