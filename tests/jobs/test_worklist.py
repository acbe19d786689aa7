"""The order of work: programs take turns, defaults first, and nothing but tables and seed decides."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.core.identity import TargetIdentity
from kernelcast.core.timing import Failure, Reason
from kernelcast.data.rule import LabelRule
from kernelcast.data.samples import to_columns
from kernelcast.data.schema import KernelRow, MeasurementRow, OccurrenceRow, PlanRow
from kernelcast.data.store import Dataset, Writer
from kernelcast.jobs.collection.worklist import attempted, work_list

TARGET = TargetIdentity(kind="xla-cpu", chip="test", compiler="jaxlib 0.0")


def dataset(folder: Path, occurrences: list[tuple[str, str, str]], *, reverse: bool = False) -> Dataset:
    """A dataset of (program, plan, kernel); the skeleton of a kernel is its first letter."""
    rows = [
        OccurrenceRow(program=p, plan=d, kernel=k, calls=1, times=1.0, trip_source="exact")
        for p, d, k in sorted(set(occurrences), reverse=reverse)
    ]
    kernels = sorted({k for _, _, k in occurrences}, reverse=reverse)
    plans = sorted({(p, d) for p, d, _ in occurrences}, reverse=reverse)
    with Writer.open(folder, target=TARGET, rule=LabelRule()) as writer:
        writer.commit(
            rows,
            [KernelRow(fingerprint=k, skeleton=k[0], kind="loop", nodes=1, text=k) for k in kernels],
            [
                PlanRow(program=p, plan=d, encoded="", how="default" if d == "untouched" else "random")
                for p, d in plans
            ],
        )
    return Dataset.open(folder)


def test_programs_take_turns_and_defaults_come_first(tmp_path: Path) -> None:
    occurrences = [("p", "untouched", "a1"), ("p", "r", "a2"), ("p", "r", "b1"), ("q", "untouched", "c1")]
    found = work_list(dataset(tmp_path, occurrences), ["p", "q"], seed=0, kernels_per_program=9)
    assert set(found[:2]) == {"a1", "c1"}  # one of each program, of its default plan
    assert found[2:] == ["b1", "a2"]  # a new skeleton before a second of one


def test_only_wanted_programs_and_their_quota_count(tmp_path: Path) -> None:
    occurrences = [("p", "untouched", f"a{n}") for n in range(9)] + [("q", "untouched", "b1")]
    given = dataset(tmp_path, occurrences)
    assert work_list(given, ["q"], seed=0, kernels_per_program=5) == ["b1"]
    assert len(work_list(given, ["p", "q"], seed=0, kernels_per_program=5)) == 6
    assert work_list(given, ["none"], seed=0, kernels_per_program=5) == []


_OCCURRENCES = st.lists(
    st.tuples(
        st.sampled_from("pqr"),
        st.sampled_from(["untouched", "r1", "r2"]),
        st.from_regex("[abc][0-9]", fullmatch=True),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=20, deadline=None)  # commits are synced to a disk that others use too
@given(_OCCURRENCES, st.integers(0, 9))
def test_the_order_does_not_depend_on_how_rows_came(
    tmp_path_factory: object, occurrences: list[tuple[str, str, str]], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("order")  # type: ignore[attr-defined]
    one, other = (dataset(folder / str(r), occurrences, reverse=r) for r in (False, True))
    order = lambda d, names: work_list(d, names, seed=seed, kernels_per_program=99)  # noqa: E731
    assert order(one, ["p", "q", "r"]) == order(other, ["r", "q", "p"])
    assert set(order(one, ["p", "q", "r"])) == {kernel for _, _, kernel in occurrences}
    assert len(order(one, ["p", "q", "r"])) == len(set(order(one, ["p", "q", "r"])))


def test_attempted_is_per_target_and_inputs_and_forgets_noise(tmp_path: Path) -> None:
    def row(
        kernel: str, reason: Reason, *, tile: str = "", target: str = "t", policy: str = "p"
    ) -> MeasurementRow:
        samples = to_columns(Failure(reason=reason, message=""))
        return MeasurementRow(
            occasion="o", kernel=kernel, tile=tile, target=target, input_policy=policy, samples=samples
        )

    with Writer.open(tmp_path, target=TARGET, rule=LabelRule()) as writer:
        writer.commit(
            [
                row("crashed", Reason.CRASH),
                row("loud", Reason.TOO_LOUD),
                row("tiled", Reason.CRASH, tile="kernel[8]"),
                row("elsewhere", Reason.CRASH, target="u"),
                row("other inputs", Reason.CRASH, policy="q"),
            ]
        )
    assert attempted(Dataset.open(tmp_path), target="t", input_policy="p") == {"crashed"}
