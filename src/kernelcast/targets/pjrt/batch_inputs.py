"""The arrays that a batch of kernels reads, and the carrier that has the same signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelcast.core.kernel import InputSpec, Kernel
from kernelcast.core.timing import Failure, Reason
from kernelcast.hlo.shape import ELEMENT_BITS, Layout, Shape
from kernelcast.targets.inputs import default_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatInput:
    """One flat input array of the executable.

    Attributes:
        element_type: HLO's name.
        elements: their number.
        spec: the values it holds.
        slot: tells apart equal inputs of one kernel.
        owner: number of the kernel that writes it in place; None where kernels share it.
    """

    element_type: str
    elements: int
    spec: InputSpec
    slot: int
    owner: int | None = None

    @property
    def shape(self) -> Shape:
        bits = ELEMENT_BITS[self.element_type]
        # XLA:CPU packs elements narrower than a byte.
        layout = Layout(minor_to_major=(0,), suffix=f"E({bits})" if bits < 8 else "")
        return Shape(element_type=self.element_type, dimensions=(self.elements,), layout=layout)


def unsupported(kernel: Kernel) -> Failure | None:
    """Why a kernel cannot stand in a batch, or None."""
    for computation in kernel.program.computations:
        for instruction in computation:
            if instruction.is_elided:
                return Failure(
                    reason=Reason.UNSUPPORTED,
                    message=f"%{instruction.name}: the values of this constant were left out when it was "
                    "printed; print the program with large constants",
                )
    for parameter in kernel.program.entry_computation.parameters:
        if not parameter.shape.is_array:
            return Failure(
                reason=Reason.UNSUPPORTED,
                message=f"%{parameter.name}: a parameter of shape {parameter.shape}; "
                "only arrays can be made up",
            )
    return None


def assign_inputs(kernels: Sequence[Kernel]) -> tuple[list[FlatInput], list[tuple[int, ...]]]:
    """All flat inputs, and per kernel the input number of each of its parameters."""
    numbers: dict[FlatInput, int] = {}
    used: list[tuple[int, ...]] = []
    for number, kernel in enumerate(kernels):
        in_place = {parameter for _, parameter in kernel.aliases}
        own: list[int] = []
        for index, parameter in enumerate(kernel.program.entry_computation.parameters):
            spec = kernel.inputs[index] if kernel.inputs else default_spec(parameter.shape)
            flat = FlatInput(
                element_type=parameter.shape.element_type,
                elements=parameter.shape.element_count,
                spec=spec,
                slot=0,
                owner=number if index in in_place else None,
            )
            while numbers.get(flat) in own:
                flat = replace(flat, slot=flat.slot + 1)
            own.append(numbers.setdefault(flat, len(numbers)))
        used.append(tuple(own))
    return list(numbers), used


def carrier(inputs: Sequence[FlatInput]) -> str:
    """StableHLO that takes the same inputs and gives a number."""
    types = [
        "tensor<i32>",
        "tensor<i32>",
        *(f"tensor<{i.elements}x{mlir_type(i.element_type)}>" for i in inputs),
    ]
    arguments = ", ".join(f"%arg{at}: {kind}" for at, kind in enumerate(types))
    return (
        f"module @kernelcast_batch {{\n  func.func public @main({arguments}) -> tensor<i32> {{\n"
        "    %0 = stablehlo.add %arg0, %arg1 : tensor<i32>\n    return %0 : tensor<i32>\n  }\n}\n"
    )


def mlir_type(element_type: str) -> str:
    """MLIR's name of an HLO element type."""
    if element_type == "pred":
        return "i1"
    if element_type in ("c64", "c128"):
        return f"complex<f{int(element_type[1:]) // 2}>"
    if element_type[0] == "s":
        return f"i{element_type[1:]}"
    if element_type[0] == "u":
        return f"ui{element_type[1:]}"
    if element_type.startswith(("f8", "f4")):
        return "f" + element_type[1:].upper()
    return element_type
