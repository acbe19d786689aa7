"""The reader of listings."""

import pytest
from tests.targets.tpu.schedule.listings import COPY, LOOP, listing

from kernelcast.targets.tpu.schedule.listing import ListingError, read_listing


def test_slots_keep_scalar_operations_and_notes() -> None:
    bundles = read_listing(listing(COPY)).bundles
    assert [len(bundle.slots) for bundle in bundles] == [1] * 8
    assert bundles[2].slots[0].text.startswith("%3 = dma.hbm_to_vmem")
    assert "size_in_granules=16" in bundles[2].slots[0].text
    assert bundles[1].slots[0].notes == ("materialized constant",)


def test_regions_name_their_first_bundle() -> None:
    assert read_listing(listing(LOOP)).regions == {4: 1}
    assert read_listing(listing(["%1 = vnop", "%2 = vnop | Start/End empty region 3"])).regions == {3: 1}


def test_a_region_that_starts_twice_starts_where_it_was_first() -> None:
    bundles = ["%1 = vnop | Start region 3", "%2 = vnop | Start region 3"]
    assert read_listing(listing(bundles)).regions == {3: 0}


@pytest.mark.parametrize("text", ["", "nothing of the kind\n"])
def test_a_text_without_bundles_is_refused(text: str) -> None:
    with pytest.raises(ListingError, match="line 1: a listing of bundles is needed"):
        read_listing(text)


def test_a_missing_bundle_is_named_with_its_line() -> None:
    text = listing(LOOP)
    cut = "\n".join(line for line in text.splitlines() if not line.strip().startswith("0x2"))
    with pytest.raises(ListingError, match="line 7: bundle 0x2 is needed here, got '   0x3") as caught:
        read_listing(cut)
    assert caught.value.line == 7


def test_a_bundle_that_is_cut_short_is_refused() -> None:
    text = listing(LOOP)
    with pytest.raises(ListingError, match="line 5: the bundle has no end, got '%s1_s1"):
        read_listing(text[: text.index("smov 0") + 6])
