"""Publishers' lists of machines, turned into cluster documents."""
