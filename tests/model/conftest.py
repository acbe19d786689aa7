"""Random small kernels with a simple law for their times, enough to see whether training works."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kernelcast.core.kernel import Kernel
from kernelcast.features.graph import Featuriser
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.model.checkpoint import Provenance
from kernelcast.model.config import GNN, TrainConfig
from kernelcast.model.examples import Examples
from kernelcast.model.network import NetworkConfig
from kernelcast.model.predict import Predictor
from kernelcast.model.train import train
from kernelcast.model.trained import Trained

_UNARY = ("tanh", "negate", "exponential", "sine")


def random_kernel(generator: np.random.Generator) -> Kernel:
    """A chain of one to eight elementwise operations on one parameter, now and then ending in a reduce."""
    rows, columns = (int(2 ** generator.integers(2, 9)) for _ in range(2))
    shape = f"f32[{rows},{columns}]{{1,0}}"
    lines = [f"  p = {shape} parameter(0)", "  z = f32[] constant(0)"]
    last = "p"
    for n in range(int(generator.integers(1, 9))):
        lines.append(f"  v{n} = {shape} {generator.choice(_UNARY)}({last})")
        last = f"v{n}"
    result = shape
    if generator.random() < 0.3:
        result = f"f32[{rows}]{{0}}"
        lines.append(f"  s = {result} reduce({last}, z), dimensions={{1}}, to_apply=adder")
        last = "s"
    lines[-1] = lines[-1].replace(f"  {last} =", f"  ROOT {last} =")
    body = "\n".join(lines)
    return kernel_from_text(
        "HloModule k\n\nadder {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
        f"  ROOT a = f32[] add(x, y)\n}}\n\nfused {{\n{body}\n}}\n\nENTRY e {{\n"
        f"  q = {shape} parameter(0)\n  ROOT r = {result} fusion(q), kind=kLoop, calls=fused\n}}\n"
    )


@pytest.fixture(scope="session")
def kernels() -> list[Kernel]:
    generator = np.random.default_rng(0)
    return [random_kernel(generator) for _ in range(160)]


@pytest.fixture(scope="session")
def examples(kernels: list[Kernel]) -> Examples:
    """Times by the law 50 ns + 0.1 ns for each nominal unit of work."""
    graphs = Featuriser().graphs(kernels)
    work = np.array([g.kernel[KERNELCAST_1.kernel_index["weighted_work"]] for g in graphs], dtype=np.float64)
    return Examples(graphs=graphs, seconds=5e-8 + 1e-10 * work)


@pytest.fixture(scope="session")
def small_config() -> TrainConfig:
    network = NetworkConfig(opcode_width=8, width=16, hops=2)
    return replace(GNN, network=network, epochs=25, patience=25, node_budget=256, learning_rate=1e-2)


@pytest.fixture(scope="session")
def fit(examples: Examples, small_config: TrainConfig) -> Callable[..., Trained]:
    """Trains on three quarters of the kernels."""

    def run(*, seed: int = 0, config: TrainConfig = small_config, **callbacks: object) -> Trained:
        cut = len(examples.graphs) * 3 // 4
        return train(
            Examples(graphs=examples.graphs[:cut], seconds=examples.seconds[:cut]),
            Examples(graphs=examples.graphs[cut:], seconds=examples.seconds[cut:]),
            schema=KERNELCAST_1,
            config=config,
            seed=seed,
            **callbacks,
        )

    return run


@pytest.fixture(scope="session")
def trained(fit: Callable[..., Trained]) -> Trained:
    return fit()


@pytest.fixture(scope="session")
def provenance() -> Provenance:
    return Provenance(
        name="gnn",
        data_digest="d" * 16,
        target={"kind": "test"},
        target_digest="t" * 16,
        statistic="none",
        versions={"numpy": "2"},
    )


@pytest.fixture(scope="session")
def predictor(trained: Trained, provenance: Provenance) -> Predictor:
    return Predictor(trained, provenance)
