"""Tuning a JAX function: a callable goes in, a faster callable of the same shapes comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from kernelcast.core.estimate import Estimator
from kernelcast.errors import TargetError
from kernelcast.fusion.apply import apply
from kernelcast.fusion.plan import FusionPlan, Untouched
from kernelcast.fusion.space import FusionSpace
from kernelcast.hlo.format import format_program
from kernelcast.jobs.as_json import Choice
from kernelcast.jobs.tuning.autotune import TuningOptions, autotune
from kernelcast.jobs.tuning.result import TuningResult
from kernelcast.jobs.tuning.spaces import space_of_plan, spaces_of
from kernelcast.targets import client
from kernelcast.targets.lowering import lower
from kernelcast.targets.pjrt.imposed import compile_as
from kernelcast.targets.pjrt.xla_cpu import XlaCpu


@dataclass(frozen=True, kw_only=True)
class TunedFunction:
    """A compiled program that is called like the function it was made from.

    Attributes:
        executable: of this process.
        shapes: of the arguments' leaves; others need their own tuning.
        in_tree, out_tree: of arguments and result.
        threads: for how many threads the choice was measured.
    """

    executable: client.Executable
    shapes: tuple[jax.ShapeDtypeStruct, ...]
    in_tree: Any
    out_tree: Any
    threads: int

    def __call__(self, *arguments: object) -> Any:
        """The function's result.

        Raises:
            TargetError: arguments of another structure, shape or element type.
        """
        leaves, tree = jax.tree.flatten(arguments)
        if tree != self.in_tree:
            raise TargetError(f"this program was tuned for arguments of structure {self.in_tree}, got {tree}")
        arrays = [
            _checked(number, leaf, shape)
            for number, (leaf, shape) in enumerate(zip(leaves, self.shapes, strict=True))
        ]
        return jax.tree.unflatten(self.out_tree, self.executable.execute(arrays))


def tune_function(
    function: Callable[..., Any],
    *arguments: object,
    estimator: Estimator,
    estimator_name: str,
    options: TuningOptions | None = None,
    seed: int = 0,
    copies_are_acceptable: bool = False,
    target: XlaCpu,
) -> tuple[Callable[..., Any], TuningResult]:
    """The function's fastest program found, as a callable, and how it was found.

    The answer is for these shapes and for ``result.target.threads`` threads; on more threads the default may
    be the faster one.

    Args:
        function: of arrays or trees of arrays; a jitted one is jitted anew.
        arguments: arrays, or their ``jax.ShapeDtypeStruct``; the values of arrays are used for timing.
        estimator: stands in for the hardware during the search. estimator_name: of it, for the result.
        copies_are_acceptable: tune a function that donates arguments, although the tuned program copies them.

    Raises:
        TargetError: the function donates arguments and copies were not said to be acceptable, or it cannot be
            compiled.
    """
    lowering = lower(function, *arguments)
    if lowering.donated and not copies_are_acceptable:
        raise TargetError(
            f"arguments {', '.join(map(str, lowering.donated))} are donated, and a tuned program cannot take "
            "them over: it copies. Pass copies_are_acceptable=True, or tune the function without donation"
        )
    leaves, in_tree = jax.tree.flatten(arguments)
    result = autotune(
        target,
        estimator,
        program=getattr(function, "__name__", type(function).__name__),
        stablehlo=lowering.stablehlo,
        estimator_name=estimator_name,
        options=options or TuningOptions(),
        seed=seed,
        # By way of JAX, which takes NumPy's 64-bit arrays for 32-bit ones unless it is told otherwise.
        inputs={
            n: np.asarray(jax.numpy.asarray(x))
            for n, x in enumerate(leaves)
            if isinstance(x, jax.Array | np.ndarray)
        },
    )
    tuned = TunedFunction(
        executable=compile_choice(spaces_of(target, lowering.stablehlo), lowering.stablehlo, result.answer),
        shapes=tuple(jax.ShapeDtypeStruct(np.shape(x), jax.dtypes.result_type(x)) for x in leaves),
        in_tree=in_tree,
        out_tree=jax.tree.structure(jax.eval_shape(function, *arguments)),
        threads=result.target.threads,
    )
    return tuned, result


def compile_choice(spaces: Sequence[FusionSpace], stablehlo: str, choice: Choice) -> client.Executable:
    """An executable of this process for a plan or a default of a program.

    Args:
        spaces: as ``spaces_of`` gives them: only the first was made with the library.
    """
    if isinstance(choice, FusionPlan):
        space = space_of_plan(spaces, choice)
        return compile_as(stablehlo, format_program(apply(space, choice)), library=space is spaces[0])[0]
    return client.compile_program(stablehlo, library=isinstance(choice, Untouched))


def _checked(number: int, leaf: object, expected: jax.ShapeDtypeStruct) -> jax.Array:
    array = jax.numpy.asarray(leaf)
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise TargetError(
            f"argument {number} is {array.dtype}{list(array.shape)}; this program was tuned for "
            f"{expected.dtype}{list(expected.shape)}: tune it again for other shapes"
        )
    return array
