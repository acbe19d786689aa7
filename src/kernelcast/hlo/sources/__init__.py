"""Programs from everywhere: JAX, HLO and StableHLO in text and bytes, exported functions, XLA dumps."""

from kernelcast.hlo.sources.load import Loaded as Loaded
from kernelcast.hlo.sources.load import load as load
from kernelcast.hlo.sources.load import to_stablehlo as to_stablehlo
from kernelcast.hlo.sources.stage import Stage as Stage
