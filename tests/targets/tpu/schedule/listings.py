"""Schedules written by hand in the grammar of final bundles."""

from collections.abc import Iterable

HEADER = "= control target key start\nLH: loop header\n= control target key end\n\n"


def listing(bundles: Iterable[str]) -> str:
    """A listing of bundles; each is its slots, and after a bar what the comment behind the brace says."""
    lines: list[str] = []
    for index, bundle in enumerate(bundles):
        slots, _, comment = bundle.partition("|")
        address = f"{index:#x}" if index else "0"
        lines.append(
            f"{address:>6}   :  {{ {slots.strip()} }} " + (f"/* {comment.strip()} */" if comment else "")
        )
    return HEADER + "\n".join(lines) + "\n"


# Adds 1 to %s1 until it is the number in the second bundle: the branch has one delay slot, which counts too.
LOOP = [
    "%s1_s1 = smov 0",
    "%s2_s1 = sadd.s32 1, %s1_s1  ;;  %9 = vnop | Start region 4",
    "%p3_p0 = scmp.lt.s32.totalorder %s2_s1, 3",
    "%4 = sbr.rel (%p3_p0) target = $region4",
    "%5 = vnop",
    "%6 = vnop",
]

# Reads 16 granules, waits, computes, writes them and waits.
COPY = [
    "%s1_s0 = inlined_call_operand.hbm [shape: f32[4096], index: 0, kind: input, shape index: {}] "
    "/* operand 0 */",
    "%s2_s2 = smov [#allocation0] /* materialized constant */",
    "%3 = dma.hbm_to_vmem [thread:$0]  /*hbm=*/%s1_s0, /*size_in_granules=*/16, /*vmem=*/%s2_s2, "
    "/*dst_syncflagno=*/[#allocation1] /* \nlabel: window, {}\nstrides: (4) */  ;;  %4 = vnop",
    "%5 = dma.done.wait [#allocation1], 16 /* wait */",
    "%6 = vsyncadd [#allocation1], 4294967280  ;;  %v1_v0 = vld [vmem:[#allocation0] sm:$0xff]",
    "%7 = dma.vmem_to_hbm [thread:$0]  /*vmem=*/%s2_s2, /*size_in_granules=*/16, /*hbm=*/%s1_s0, "
    "/*dst_syncflagno=*/[#allocation2]",
    "%8 = dma.done.wait [#allocation2], 16",
    "%9 = vsyncadd [#allocation2], 4294967280",
]
