"""Predictors: statuses, bounds, graphs instead of kernels, and ensembles."""

import numpy as np
import pytest

from kernelcast.core.estimate import Status
from kernelcast.features.graph import Featuriser
from kernelcast.fusion.extract import kernel_from_text
from kernelcast.model.predict import Ensemble, Predictor

LOGARITHM = "HloModule k\nENTRY e {\n  p = f32[64]{0} parameter(0)\n  ROOT r = f32[64]{0} log(p)\n}\n"


def test_training_kernels_are_known_and_others_extrapolated(predictor, kernels):
    assert set(predictor.estimate(kernels[:120]).status.tolist()) == {int(Status.KNOWN)}
    unseen = predictor.estimate([kernel_from_text(LOGARITHM)])
    assert unseen.status.tolist() == [int(Status.EXTRAPOLATED)]
    assert unseen.seconds[0] > 0


def test_there_are_no_bounds_before_calibration(predictor, kernels):
    estimates = predictor.estimate(kernels[:3])
    assert np.isnan(estimates.lower).all()
    assert np.isnan(estimates.upper).all()


def test_graphs_and_kernels_give_the_same(predictor, kernels):
    graphs = Featuriser().graphs(kernels[:9])
    np.testing.assert_array_equal(
        predictor.estimate_graphs(graphs).seconds, predictor.estimate(kernels[:9]).seconds
    )


def test_an_ensemble_is_the_geometric_mean(fit, predictor, provenance, kernels):
    other = Predictor(fit(seed=1), provenance)
    first, second = predictor.estimate(kernels[:9]).seconds, other.estimate(kernels[:9]).seconds
    together = Ensemble([predictor, other]).estimate(kernels[:9]).seconds
    np.testing.assert_allclose(together, np.sqrt(first * second), rtol=1e-6)


def test_an_ensemble_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one predictor"):
        Ensemble([])
