"""The zoo: every variant lowers, ids are unique, families stay what they were."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from kernelcast import zoo
from kernelcast.errors import KernelcastError
from kernelcast.zoo import inputs


def test_ids_are_unique() -> None:
    ids = [variant.id for variant in zoo.variants()]
    assert len(set(ids)) == len(ids)
    names = [program.name for program in zoo.programs()]
    assert len(set(names)) == len(names)


def test_listing_imports_no_jax() -> None:
    code = "import sys; from kernelcast import zoo; zoo.find('nbody'); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("variant", zoo.variants(), ids=lambda variant: variant.id)
def test_variant_lowers_with_its_example_inputs(variant: zoo.Variant) -> None:
    function, arguments = variant.build()
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    structs = jax.tree.leaves(arguments)
    drawn = variant.example_inputs(seed=0)
    assert [(x.shape, x.dtype) for x in drawn] == [(s.shape, s.dtype) for s in structs]
    assert all(np.isfinite(x.astype(np.float64)).all() for x in drawn)
    assert lowered.as_text().startswith("module")


def test_example_inputs_depend_on_the_seed_only() -> None:
    variant = zoo.find("rbf")
    first, again, other = (variant.example_inputs(seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_find_takes_a_bare_name_for_its_first_variant() -> None:
    assert zoo.find("double_softmax").id == "double_softmax/512x1024"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nbdy/512", "did you mean nbody/512"),
        ("nbody/513", "has no variant '513'"),
        ("qqqqqq", "`kernelcast zoo list` lists all"),
    ],
)
def test_unknown_names_are_told_what_is_valid(name: str, text: str) -> None:
    with pytest.raises(KernelcastError, match=text):
        zoo.find(name)


def test_a_program_without_variants_is_refused() -> None:
    with pytest.raises(KernelcastError, match="no variant"):
        zoo.ZooProgram(name="x", family="x", build="x.y", options={}, source="")


def test_inputs_draw_what_they_say() -> None:
    random = np.random.default_rng(0)
    rising = inputs.sorted_indices((50,), below=7).draw(random)
    assert (np.diff(rising) >= 0).all()
    assert 0 <= rising.min() <= rising.max() < 7
    assert inputs.constant(3.0, (2,)).draw(random).tolist() == [3.0, 3.0]
    assert inputs.uniform((100,), 1.0, 2.0).draw(random).min() >= 1.0
    assert inputs.normal((4,), dtype="bfloat16").draw(random).dtype.name == "bfloat16"
    assert inputs.weight(100, 400).draw(random).std() == pytest.approx(0.1, rel=0.05)
