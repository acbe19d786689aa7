"""Kernels and families of programs, read from a dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kernelcast.core.kernel import Kernel
from kernelcast.data.schema import KernelRow, ProgramRow
from kernelcast.data.store import Dataset
from kernelcast.errors import StoreError
from kernelcast.fusion.extract import kernel_from_text


def kernels(dataset: Dataset, fingerprints: Collection[str] | None = None) -> Iterator[Kernel]:
    """The kernels of a dataset in the order stored, rebuilt from their text one at a time.

    Args:
        fingerprints: only these, in a collection that is quick to look into.
    """
    for row in dataset.rows(KernelRow):
        if fingerprints is None or row.fingerprint in fingerprints:
            yield rebuilt(row)


def rebuilt(row: KernelRow) -> Kernel:
    """The kernel of a row.

    Raises:
        StoreError: the text is not the one that the fingerprint was made of.
    """
    kernel = kernel_from_text(row.text)
    if kernel.fingerprint != row.fingerprint:
        raise StoreError(
            f"kernel {row.fingerprint}: its text has fingerprint {kernel.fingerprint}: the dataset is "
            "of a version of kernelcast with another canonical form; collect again"
        )
    return kernel


def families(dataset: Dataset) -> dict[str, str]:
    """The family of each program."""
    return dict(dataset.columns(ProgramRow, "program", "family"))
