"""Search that knows no HLO: states, moves and batched costs."""
