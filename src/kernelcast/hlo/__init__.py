"""HLO programs: read, written, checked and costed without a compiler."""
