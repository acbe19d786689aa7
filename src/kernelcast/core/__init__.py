"""What a kernel is, how its time is held, and what an estimator promises."""
