"""The table of all zoo programs. Families are fixed: a split made once stays valid."""

from __future__ import annotations

from kernelcast.zoo.program import ZooProgram

PROGRAMS: tuple[ZooProgram, ...] = (
    ZooProgram(
        name="nbody", family="nbody", build="memory_bound.nbody", source="all-pairs gravity",
        options={"512": {"bodies": 512}, "300": {"bodies": 300}},
    ),
    ZooProgram(
        name="rbf", family="kernel_method", build="memory_bound.rbf", source="radial basis functions",
        options={"512": {"points": 512, "features": 16}, "256-wide": {"points": 256, "features": 48}},
    ),
    ZooProgram(
        name="stencil", family="heat", build="memory_bound.stencil", source="explicit heat equation",
        options={"768": {"size": 768, "steps": 3}, "250": {"size": 250, "steps": 5}},
    ),
    ZooProgram(
        name="groupnorm_silu", family="normalisation", build="memory_bound.groupnorm_silu",
        source="Wu & He 2018",
        options={
            "b4-32x32": {"batch": 4, "size": 32, "channels": 64},
            "b2-48x48": {"batch": 2, "size": 48, "channels": 96},
        },
    ),
    ZooProgram(
        name="squared_differences", family="total_variation", build="memory_bound.squared_differences",
        source="total variation of a volume", options={"96": {"size": 96}, "50": {"size": 50}},
    ),
    ZooProgram(
        name="rmsnorm_rotary", family="llama", build="memory_bound.rmsnorm_rotary",
        source="Touvron et al. 2023",
        options={"512x1024": {"rows": 512, "features": 1024}, "300x640": {"rows": 300, "features": 640}},
    ),
    ZooProgram(
        name="double_softmax", family="softmax", build="memory_bound.double_softmax",
        source="dual softmax matching",
        options={"512x1024": {"rows": 512, "columns": 1024}, "200x300": {"rows": 200, "columns": 300}},
    ),
    ZooProgram(
        name="layernorm_backward", family="normalisation", build="memory_bound.layernorm_backward",
        source="Ba et al. 2016",
        options={"512x768": {"rows": 512, "features": 768}, "1000x256": {"rows": 1000, "features": 256}},
    ),
    ZooProgram(
        name="scan_gradient", family="simple_rnn", build="memory_bound.scan_gradient", source="Elman 1990",
        options={
            "48": {"steps": 48, "batch": 16, "features": 64},
            "20-wide": {"steps": 20, "batch": 32, "features": 160},
        },
    ),
    ZooProgram(
        name="transformer_train", family="transformer", build="memory_bound.transformer_train",
        source="Vaswani et al. 2017",
        options={
            "b4": {"batch": 4, "length": 128, "features": 128, "heads": 4},
            "b2-wide": {"batch": 2, "length": 96, "features": 192, "heads": 6},
        },
    ),
)  # fmt: skip
