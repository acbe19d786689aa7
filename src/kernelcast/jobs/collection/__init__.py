"""Collecting a dataset, and measuring parts of it again."""
