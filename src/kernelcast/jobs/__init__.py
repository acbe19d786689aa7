"""The use cases: the only place where programs, targets, models and search meet."""
