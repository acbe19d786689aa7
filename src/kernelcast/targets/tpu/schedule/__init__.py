"""Time without a device: the final schedule of a kernel is read, its scalar slots are executed, and its
transfers go through a model of the DMA engine. What comes out is a *simulated* time."""
