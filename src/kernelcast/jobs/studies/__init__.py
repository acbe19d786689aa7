"""The studies behind the docs' figures, each with a journal of raw results."""
