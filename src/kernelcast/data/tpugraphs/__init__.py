"""TpuGraphs as published: tile and layout files, tuning protos, and batches streamed from folders of them."""
