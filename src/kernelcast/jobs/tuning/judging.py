"""Choosing among timed candidates: on the even rounds, with a guard on the odd ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.core.timing import Failure, Timing
from kernelcast.jobs.comparison import Ratio, time_ratio

# What an A/A control may stray before a gain of the same size is taken for noise, at the least.
_LEAST_NOISE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Which candidate is the answer, and how sure that is.

    Attributes:
        winner: index of the candidate that was fastest on even rounds; None where every candidate failed.
        answer: the winner where it passed the guard; None means that the default stays.
        why: one sentence for people.
        over_default: gain (default's time over the winner's) on odd rounds; None without a winner.
        over_library_off: the same over the library-off default; None where that failed or was not timed.
        over_best_default: over the better of the two defaults, chosen on even rounds.
        control: A/A ratio of the default against itself on odd rounds; 1.0 on a perfect machine.
    """

    winner: int | None
    answer: int | None
    why: str
    over_default: Ratio | None
    over_library_off: Ratio | None
    over_best_default: Ratio | None
    control: Ratio


def judge(
    *,
    default: Timing,
    control: Timing,
    library_off: Timing | Failure | None,
    candidates: Sequence[Timing | Failure],
) -> Judgement:
    """The answer among candidates that ran in the same rounds as the default.

    The guard: an answer must be faster than the default on rounds that did not choose it, and the upper end
    of that ratio's interval may exceed 1 by no more than the noise of the A/A control. Otherwise the default
    stays, so an answer is never slower than it beyond the noise.

    Args:
        default: the untouched program.
        control: the untouched program once more.
        library_off: the default with library fusions off, a yardstick here; to be an answer it must be among
            the candidates too.
    """
    noise = time_ratio(control, default, rounds="odd")
    winner = fastest(default, candidates)
    if winner is None:
        return Judgement(
            winner=None,
            answer=None,
            why=f"none of {len(candidates)} candidates ran; the default stays",
            over_default=None,
            over_library_off=None,
            over_best_default=None,
            control=noise,
        )
    timing = candidates[winner]
    assert isinstance(timing, Timing)
    ratio = time_ratio(timing, default, rounds="odd")
    tolerated = max(_LEAST_NOISE, abs(noise.value - 1))
    passed = ratio.value < 1 and not ratio.upper > 1 + tolerated
    off = library_off if isinstance(library_off, Timing) else None
    return Judgement(
        winner=winner,
        answer=winner if passed else None,
        why=_sentence(ratio, tolerated, passed),
        over_default=ratio.inverse,
        over_library_off=time_ratio(timing, off, rounds="odd").inverse if off is not None else None,
        over_best_default=time_ratio(timing, better_default(default, off), rounds="odd").inverse,
        control=noise,
    )


def fastest(default: Timing, candidates: Sequence[Timing | Failure]) -> int | None:
    """Index of the candidate with the least even-round time relative to the default; None if all failed."""
    ratios = {
        index: time_ratio(candidate, default, rounds="even").value
        for index, candidate in enumerate(candidates)
        if isinstance(candidate, Timing)
    }
    known = {index: ratio for index, ratio in ratios.items() if ratio == ratio}  # NaN: no common even round
    return min(known, key=known.__getitem__) if known else None


def better_default(default: Timing, library_off: Timing | None) -> Timing:
    """The faster of the two defaults on even rounds."""
    if library_off is None or not time_ratio(library_off, default, rounds="even").value < 1:
        return default
    return library_off


def _sentence(ratio: Ratio, tolerated: float, passed: bool) -> str:
    gain = ratio.inverse
    measured = f"{gain.value:.3f}× the default's speed [{gain.lower:.3f}, {gain.upper:.3f}]"
    if passed:
        return f"the best candidate ran at {measured} on rounds that did not choose it"
    return (
        f"the best candidate ran at {measured} on rounds that did not choose it, which does not exceed the "
        f"noise of ±{100 * tolerated:.1f} %; the default stays"
    )
