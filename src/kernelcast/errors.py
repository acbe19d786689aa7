"""The errors that Kernelcast raises: one root, leaves only where a caller would act differently."""


class KernelcastError(Exception):
    """Any error that a user can act on. Its text says what was got, what is valid and what to do."""


class HloError(KernelcastError):
    """HLO that cannot be read or is not valid.

    Attributes:
        line: 1-based line of the text, or None where there is no text.
        instruction: name of the instruction (without ``%``), or None.
        message: what is wrong, without the place.
    """

    def __init__(self, message: str, *, line: int | None = None, instruction: str | None = None) -> None:
        place = ", ".join(
            part
            for part in (
                f"line {line}" if line is not None else "",
                f"%{instruction}" if instruction is not None else "",
            )
            if part
        )
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.line = line
        self.instruction = instruction


class PlanError(KernelcastError):
    """A fusion plan that does not belong to the program, or would not be legal on the target."""


class SchemaError(KernelcastError):
    """A dataset, checkpoint, plan or result file of another schema, program, target or digest."""


class StoreError(KernelcastError):
    """A dataset folder that cannot be read or written."""


class TargetError(KernelcastError):
    """A target that cannot do what was asked on this machine."""


class MissingExtraError(KernelcastError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs {package}, which is not installed: pip install 'kernelcast[{extra}]'"
        )
