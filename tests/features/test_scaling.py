"""Scaling fitted once: transforms, dropped constants, and what counts as outside the training range."""

import numpy as np
import pytest

from kernelcast.features.graph import Featuriser
from kernelcast.features.scaling import CLIP, fit_scaling
from kernelcast.features.schema import KERNELCAST_1, Block

PAPER = frozenset({Block.PAPER, Block.MASK, Block.TILE})
ALL = frozenset(Block)


def negate(bare, extent):
    return Featuriser().graph(bare(f"f32[{extent}]{{0}} negate(p0)", f"f32[{extent}]{{0}}"))


def test_logarithms_are_standardised_and_constant_columns_dropped(bare):
    graphs = [negate(bare, 8), negate(bare, 64)]
    scaling = fit_scaling(graphs, KERNELCAST_1, PAPER)
    names = [KERNELCAST_1.node[n].name for n in scaling.node.columns]
    assert "extent_0" in names
    assert "type_f32" not in names
    scaled = scaling.node.apply(np.concatenate([g.rows for g in graphs]))
    extent = scaled[:, names.index("extent_0")]
    np.testing.assert_allclose(extent, [-1, -1, 1, 1], atol=1e-5)


def test_the_paper_blocks_leave_kernel_and_static_columns_out(bare):
    scaling = fit_scaling([negate(bare, 8), negate(bare, 64)], KERNELCAST_1, PAPER)
    assert scaling.kernel.columns.size == 0
    assert all(KERNELCAST_1.node[n].block is not Block.STATIC for n in scaling.node.columns)


def test_training_kernels_are_inside_and_others_outside(bare):
    graphs = [negate(bare, extent) for extent in (8, 64, 1000)]
    scaling = fit_scaling(graphs, KERNELCAST_1, ALL)
    assert not any(scaling.extrapolates(graph) for graph in graphs)
    assert scaling.extrapolates(negate(bare, 2000))
    assert scaling.extrapolates(negate(bare, 4))
    unseen = Featuriser().graph(bare("f32[64]{0} tanh(p0)", "f32[64]{0}"))
    assert fit_scaling(graphs, KERNELCAST_1, PAPER).extrapolates(unseen)
    other_memory = Featuriser().graph(bare("f32[8]{0:S(1)} negate(p0)", "f32[8]{0}"))
    assert fit_scaling(graphs, KERNELCAST_1, PAPER).extrapolates(other_memory)


def test_far_values_are_clipped(bare):
    scaling = fit_scaling([negate(bare, 8), negate(bare, 9)], KERNELCAST_1, PAPER)
    far = scaling.node.apply(negate(bare, 100_000_000).rows)
    assert np.abs(far).max() <= CLIP


def test_no_kernel_is_an_error():
    with pytest.raises(ValueError, match="at least one kernel"):
        fit_scaling([], KERNELCAST_1, PAPER)
