"""XLA:TPU ahead of time: the production compiler on a machine without a TPU (extra ``tpu``)."""
