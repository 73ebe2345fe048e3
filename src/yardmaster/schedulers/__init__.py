"""Who decides: orders, disciplines and placements, and the language that names them."""
