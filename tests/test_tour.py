"""The library in one-liners: from a JAX function to a fusion plan that a search found. Read it first.

What needs a quiet machine, timing kernels and tuning, is in the README's tour and in ``tests/targets``.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelcast
from kernelcast.core.analytical import Peaks
from kernelcast.core.kernel import Kind
from kernelcast.core.timing import Statistic
from kernelcast.features.graph import Featuriser
from kernelcast.features.scaling import fit_scaling
from kernelcast.features.schema import KERNELCAST_1
from kernelcast.fusion.apply import apply
from kernelcast.fusion.decompose import decompose
from kernelcast.fusion.extract import kernels_of
from kernelcast.fusion.moves import apply_move, flip
from kernelcast.fusion.plan import FusionPlan
from kernelcast.fusion.space import FusionSpace, default, space_of, unfused
from kernelcast.hlo.cost import program_cost
from kernelcast.hlo.program import Program
from kernelcast.hlo.verify import verify
from kernelcast.jobs.programs.predict import predict_program
from kernelcast.jobs.tuning.kernel_prices import KernelPrices
from kernelcast.jobs.tuning.plan_search import SearchOptions, priced_costs, search_plans
from kernelcast.metrics import kendall_tau, mape
from kernelcast.model.checkpoint import Provenance
from kernelcast.model.config import GNN
from kernelcast.model.network import KernelNetwork
from kernelcast.model.predict import Predictor
from kernelcast.model.roofline import Coefficients, Roofline
from kernelcast.model.trained import Trained
from kernelcast.search.anneal import AnnealingOptions


def network(x: jax.Array, weights: jax.Array) -> jax.Array:
    """One layer with a softmax, applied three times."""
    return jax.lax.fori_loop(0, 3, lambda _, x: jax.nn.softmax(jnp.tanh(x @ weights) * 2 + 1), x)


@pytest.fixture(scope="module")
def program() -> Program:
    """The compiler's own final module: scheduled, and cut into kernels by its own fusion passes."""
    compiled = jax.jit(network).lower(jnp.ones((64, 32)), jnp.ones((32, 32))).compile()
    return kernelcast.parse(compiled.as_text())


@pytest.fixture(scope="module")
def space(program: Program) -> FusionSpace:
    return space_of(program)


def test_a_program_is_read_and_written(program: Program) -> None:
    assert kernelcast.parse(kernelcast.format_program(program)) == program
    verify(program)
    assert program.is_scheduled
    assert len(program.scheduled_computations()) >= 3, "entry, body and condition of the loop"


def test_its_arithmetic_is_counted_with_the_trips_of_loops(program: Program) -> None:
    assert program_cost(program).flops >= 3 * 2 * 64 * 32 * 32, "three products of matrices, at least"


def test_it_is_a_set_of_kernels_each_with_a_fingerprint(program: Program) -> None:
    kernels = [kernel for _, _, kernel in kernels_of(program)]
    assert {Kind.LIBRARY, Kind.DOT} & {kernel.kind for kernel in kernels}
    assert all(kernelcast.parse(kernel.text) == kernel.canonical for kernel in kernels)
    assert len({kernel.fingerprint for kernel in kernels}) == len(set(kernels))


def test_its_default_is_one_plan_of_many(space: FusionSpace) -> None:
    assert len(space.decisions) > 1
    assert apply(space, default(space)) == space.original
    assert len(space.groups(unfused(space))) > len(space.groups(default(space)))


def test_a_plan_is_a_line_of_json(space: FusionSpace) -> None:
    assert FusionPlan.decode(default(space).encode()) == default(space)


def test_a_move_leads_to_a_neighbour_and_back(space: FusionSpace) -> None:
    moved = apply_move(space, unfused(space), flip(space, space.decisions[0]))
    assert (len(moved.removed), len(moved.added)) == (2, 1), "producer and consumer are one kernel now"
    assert apply_move(space, moved.plan, moved.inverse).plan == unfused(space)


def test_a_plan_makes_a_module_whose_kernels_run_so_often(space: FusionSpace) -> None:
    pieces = decompose(apply(space, unfused(space)))
    assert len(pieces.calls) == len(space.groups(unfused(space)))
    assert {count.value for count in pieces.counts().values()} >= {3.0}, "the loop's body runs three times"


def test_kernels_are_graphs_of_numbers(space: FusionSpace) -> None:
    kernels = [space.kernel(group) for group in space.groups(default(space))]
    graphs = Featuriser().graphs(kernels)
    assert all(graph.rows.shape == (graph.node_count, len(KERNELCAST_1.node)) for graph in graphs)


def test_a_network_gives_seconds_and_says_how_far_to_trust_them(
    program: Program, untrained: Predictor
) -> None:
    estimate = predict_program(program, untrained)
    assert estimate.seconds > 0, "of random weights: the number means nothing"
    assert not estimate.missing


def test_estimates_are_judged_against_measured_times() -> None:
    predicted, measured = np.array([1.1, 2.0, 2.7]), np.array([1.0, 2.0, 3.0])
    assert mape(predicted, measured) == pytest.approx(20 / 3)
    assert kendall_tau(predicted, measured) == 1.0


def test_a_search_takes_a_model_for_the_hardware(space: FusionSpace) -> None:
    estimator = Roofline(
        peaks=Peaks(flops_per_s=5e10, bytes_per_s=1e10), coefficients=Coefficients(by_kind={}, pooled=1.0)
    )
    prices = KernelPrices(estimator, statistic=Statistic.GATED_MEDIAN, optimism=1.0)
    costs = priced_costs(space, prices.price)
    options = SearchOptions(chains=4, annealing=AnnealingOptions(steps=100))
    found = search_plans(space, costs, options=options, seed=0)
    (start,) = costs.of_states([default(space)], [default(space)])
    assert found.best.cost <= start
    verify(apply(space, found.best.state))


@pytest.fixture(scope="module")
def untrained(program: Program) -> Predictor:
    """The paper's network with random weights, scaled to the kernels of the program."""
    graphs = Featuriser().graphs([kernel for _, _, kernel in kernels_of(program)])
    scaling = fit_scaling(graphs, KERNELCAST_1, frozenset(GNN.blocks))
    weights = KernelNetwork(
        GNN.network,
        opcode_count=len(KERNELCAST_1.opcodes),
        node_features=len(scaling.node.columns),
        kernel_features=len(scaling.kernel.columns),
        key=jax.random.key(0),
    )
    trained = Trained(
        network=weights, scaling=scaling, centre=np.log(1e-6), spread=1.0, config=GNN, seed=0, history=()
    )
    nothing = Provenance(
        name="untrained", data_digest="", target={}, target_digest="", statistic="", versions={}
    )
    return Predictor(trained, nothing)
