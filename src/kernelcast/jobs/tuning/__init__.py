"""Finding a faster plan for a program, and using it."""
