"""Programs as users name them; their times, predicted and measured, whole and kernel by kernel."""
