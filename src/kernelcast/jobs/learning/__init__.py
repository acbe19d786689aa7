"""From a dataset to models, and how good they are."""
