"""One battery over every estimator: what a search may rely on, whoever answers."""

from collections.abc import Callable

import numpy as np
import pytest

from kernelcast.core.analytical import Peaks
from kernelcast.core.estimate import Estimator, Status
from kernelcast.core.timing import Clock, Sample, Statistic, Timing
from kernelcast.data.recorded import Recording
from kernelcast.model.examples import Examples
from kernelcast.model.predict import Ensemble, Predictor
from kernelcast.model.roofline import Fitting, fit_roofline
from kernelcast.model.trees import TreesConfig, fit_trees

PEAKS = Peaks(flops_per_s=5e10, bytes_per_s=1e10)


def _recording(kernels, examples, predictor):
    timing = lambda s: Timing(  # noqa: E731
        samples=(Sample(runs=1, seconds=s, loudness=1.0, round=0),), clock=Clock.SIMULATED, method="law"
    )
    times = {k.fingerprint: timing(s) for k, s in zip(kernels, examples.seconds, strict=True)}
    return Recording(times, Statistic.GATED_MEDIAN)


def _trees(kernels, examples, predictor):
    pytest.importorskip("lightgbm")
    half = Examples(graphs=examples.graphs[:80], seconds=examples.seconds[:80])
    rest = Examples(graphs=examples.graphs[80:], seconds=examples.seconds[80:])
    return fit_trees(half, rest, config=TreesConfig(rounds=30), seed=0)


MAKERS: dict[str, Callable[..., Estimator]] = {
    "gnn": lambda kernels, examples, predictor: predictor,
    "ensemble": lambda kernels, examples, predictor: Ensemble([predictor, predictor]),
    "roofline": lambda kernels, examples, predictor: fit_roofline(
        examples.graphs, examples.seconds, PEAKS, Fitting.MEDIAN
    ),
    "gbdt": _trees,
    "recorded": _recording,
}


@pytest.fixture(scope="module", params=MAKERS)
def estimator(request, kernels, examples, predictor: Predictor) -> Estimator:
    return MAKERS[request.param](kernels, examples, predictor)


def test_it_is_an_estimator(estimator):
    assert isinstance(estimator, Estimator)


def test_one_positive_number_or_a_reason_per_kernel_in_order(estimator, kernels):
    estimates = estimator.estimate(kernels[:30])
    assert len(estimates) == 30
    assert estimates.seconds.dtype == np.float64
    known = np.isin(estimates.status, (Status.KNOWN, Status.EXTRAPOLATED))
    assert (estimates.seconds[known] > 0).all()
    assert np.isnan(estimates.seconds[~known]).all()
    backwards = estimator.estimate(kernels[29::-1])
    np.testing.assert_allclose(backwards.seconds[::-1], estimates.seconds, rtol=1e-4)


def test_other_kernels_of_the_call_change_nothing(estimator, kernels):
    together = estimator.estimate(kernels[:40])
    alone = [estimator.estimate([kernel]) for kernel in kernels[:5]]
    np.testing.assert_allclose(together.seconds[:5], [a.seconds[0] for a in alone], rtol=1e-4)
    assert together.status[:5].tolist() == [int(a.status[0]) for a in alone]


def test_asking_twice_gives_the_same(estimator, kernels):
    first, second = estimator.estimate(kernels[:10]), estimator.estimate(kernels[:10])
    np.testing.assert_array_equal(first.seconds, second.seconds)


def test_no_kernels_no_estimates(estimator):
    assert len(estimator.estimate([])) == 0


def test_bounds_are_missing_or_hold_the_estimate(estimator, kernels):
    estimates = estimator.estimate(kernels[:10])
    told = ~np.isnan(estimates.lower)
    assert (estimates.lower[told] <= estimates.seconds[told]).all()
    assert (estimates.seconds[told] <= estimates.upper[told]).all()
