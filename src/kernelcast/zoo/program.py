"""A zoo program and its variants: a name that builds something to compile, with typical inputs."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, cast

import numpy as np

from kernelcast.errors import KernelcastError
from kernelcast.hlo.program import Program
from kernelcast.zoo.inputs import Input, numpy_dtype

# What a build function returns: a function of arrays, and its arguments as trees with ``Input`` leaves; or
# a ``Program``, and one ``Input`` per parameter.
Built = tuple[Callable[..., Any] | Program, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooProgram:
    """One program of the zoo, at several sizes.

    Attributes:
        name: unique in the zoo.
        family: programs of one architecture; splits keep a family in one part, so it never changes.
        build: takes a variant's options and returns ``Built``. In the catalogue ``module.function`` under
            ``kernelcast.zoo``, named and not imported, so that the zoo can be listed without JAX.
        options: of each variant, by the variant's name.
        source: where the architecture comes from.
        licence: of the code.
    """

    name: str
    family: str
    build: str | Callable[..., Built]
    options: Mapping[str, Mapping[str, Any]]
    source: str
    licence: str = "Apache-2.0"

    def __post_init__(self) -> None:
        if not self.options:
            raise KernelcastError(f"zoo program {self.name} has no variant; it needs at least one")
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(Variant(program=self, name=name) for name in self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One program at one size, precision and mode.

    >>> from kernelcast import zoo
    >>> variant = zoo.find("nbody/512")
    >>> variant.id, variant.family, [x.shape for x in variant.example_inputs(seed=0)]
    ('nbody/512', 'nbody', [(512, 3), (512, 3)])
    """

    program: ZooProgram
    name: str

    @property
    def id(self) -> str:
        return f"{self.program.name}/{self.name}"

    @property
    def family(self) -> str:
        return self.program.family

    @property
    def options(self) -> Mapping[str, Any]:
        return self.program.options[self.name]

    def build(self) -> tuple[Callable[..., Any] | Program, tuple[Any, ...]]:
        """A source that ``hlo.sources`` and the targets take, with its arguments.

        That is a function and trees of ``jax.ShapeDtypeStruct``, or, of a file, a ``Program`` and nothing.
        """
        import jax

        function, arguments = self._built()
        if isinstance(function, Program):
            return function, ()
        struct = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, numpy_dtype(leaf.dtype))  # noqa: E731
        return function, jax.tree.map(struct, arguments)

    def example_inputs(self, seed: int) -> list[np.ndarray]:
        """Valid, typical values, one array per parameter of the compiled program, in order.

        They depend on the seed and on the variant, so that no two programs share their data.
        """
        import jax

        random = np.random.default_rng((zlib.crc32(self.id.encode()), seed))
        return [leaf.draw(random) for leaf in cast("list[Input]", jax.tree.leaves(self._built()[1]))]

    def _built(self) -> Built:
        build = self.program.build
        if isinstance(build, str):
            module, function = build.split(".")
            build = cast("Callable[..., Built]", getattr(_module(module), function))
        return build(**self.options)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"kernelcast.zoo.{name}")
