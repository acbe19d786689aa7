"""What ``import kernelcast`` offers for JAX functions: prediction and tuning on this machine's CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelcast.hlo.text import parse
from kernelcast.jobs.estimators import named_estimator
from kernelcast.jobs.programs.predict import ProgramEstimate, predict_program
from kernelcast.jobs.tuning.autotune import TuningOptions
from kernelcast.jobs.tuning.result import TuningResult
from kernelcast.jobs.tuning.tuned_function import tune_function
from kernelcast.targets.lowering import lower
from kernelcast.targets.pjrt.xla_cpu import XlaCpu


def predict(
    function: Callable[..., Any], *arguments: object, checkpoint: Path | None = None
) -> ProgramEstimate:
    """The predicted time of a function on XLA:CPU with one thread, kernel by kernel; nothing is run.

    Args:
        function: of arrays or trees of arrays.
        arguments: arrays, or their ``jax.ShapeDtypeStruct``.
        checkpoint: folder of a checkpoint or of several; the bundled ones for None.

    Raises:
        TargetError: XLA cannot compile the function.
        SchemaError: the checkpoint cannot be used.
    """
    found = named_estimator(checkpoint)
    with XlaCpu() as target:
        module = target.capture(lower(function, *arguments).stablehlo)
    return predict_program(parse(module), found.estimator, terms=found.terms)


def autotune(
    function: Callable[..., Any],
    *arguments: object,
    checkpoint: Path | None = None,
    options: TuningOptions | None = None,
    seed: int = 0,
    copies_are_acceptable: bool = False,
    cpu: int | None = None,
) -> tuple[Callable[..., Any], TuningResult]:
    """The function compiled with the fastest fusion plan found, and how it was found.

    The callable takes arguments of the same structure, shapes and element types. It was measured for
    ``result.target.threads`` threads; ``result.judgement`` says what it gains, and where no plan beat the
    compiler's default beyond the noise it is the default.

    Args:
        function: of arrays or trees of arrays.
        arguments: arrays, whose values are used for timing, or their ``jax.ShapeDtypeStruct``.
        checkpoint: folder of a checkpoint or of several; the bundled ones for None.
        options: budgets and search; ``TuningOptions()`` for None.
        seed: of everything random.
        copies_are_acceptable: tune a function that donates arguments, although the tuned program copies them.
        cpu: to measure on; the last one of this process for None.

    Raises:
        TargetError: the function donates arguments and copies were not said to be acceptable, or XLA cannot
            compile it.
        SchemaError: the checkpoint cannot be used.
    """
    found = named_estimator(checkpoint)
    with XlaCpu(cpu=cpu) as target:
        return tune_function(
            function,
            *arguments,
            estimator=found.estimator,
            estimator_name=found.name,
            options=options,
            seed=seed,
            copies_are_acceptable=copies_are_acceptable,
            target=target,
        )
