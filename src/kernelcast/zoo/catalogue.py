"""The table of all zoo programs. Families are fixed: a split made once stays valid."""

from __future__ import annotations

from kernelcast.zoo.program import ZooProgram

PROGRAMS: tuple[ZooProgram, ...] = (
    ZooProgram(
        name="nbody", family="nbody",
        build="memory_bound.nbody", source="all-pairs gravity",
        options={"512": {"bodies": 512}, "300": {"bodies": 300}},
    ),
    ZooProgram(
        name="rbf", family="kernel_method",
        build="memory_bound.rbf", source="radial basis functions",
        options={"512": {"points": 512, "features": 16}, "256-wide": {"points": 256, "features": 48}},
    ),
    ZooProgram(
        name="stencil", family="heat",
        build="memory_bound.stencil", source="explicit heat equation",
        options={"768": {"size": 768, "steps": 3}, "250": {"size": 250, "steps": 5}},
    ),
    ZooProgram(
        name="groupnorm_silu", family="normalisation",
        build="memory_bound.groupnorm_silu", source="Wu & He 2018",
        options={
            "b4-32x32": {"batch": 4, "size": 32, "channels": 64},
            "b2-48x48": {"batch": 2, "size": 48, "channels": 96},
        },
    ),
    ZooProgram(
        name="squared_differences", family="total_variation",
        build="memory_bound.squared_differences", source="total variation of a volume",
        options={"96": {"size": 96}, "50": {"size": 50}},
    ),
    ZooProgram(
        name="rmsnorm_rotary", family="llama",
        build="memory_bound.rmsnorm_rotary", source="Touvron et al. 2023",
        options={"512x1024": {"rows": 512, "features": 1024}, "300x640": {"rows": 300, "features": 640}},
    ),
    ZooProgram(
        name="double_softmax", family="softmax",
        build="memory_bound.double_softmax", source="dual softmax matching",
        options={"512x1024": {"rows": 512, "columns": 1024}, "200x300": {"rows": 200, "columns": 300}},
    ),
    ZooProgram(
        name="layernorm_backward", family="normalisation",
        build="memory_bound.layernorm_backward", source="Ba et al. 2016",
        options={"512x768": {"rows": 512, "features": 768}, "1000x256": {"rows": 1000, "features": 256}},
    ),
    ZooProgram(
        name="scan_gradient", family="simple_rnn",
        build="memory_bound.scan_gradient", source="Elman 1990",
        options={
            "48": {"steps": 48, "batch": 16, "features": 64},
            "20-wide": {"steps": 20, "batch": 32, "features": 160},
        },
    ),
    ZooProgram(
        name="transformer_train", family="transformer",
        build="memory_bound.transformer_train", source="Vaswani et al. 2017",
        options={
            "b4": {"batch": 4, "length": 128, "features": 128, "heads": 4},
            "b2-wide": {"batch": 2, "length": 96, "features": 192, "heads": 6},
        },
    ),
    ZooProgram(
        name="bert", family="bert",
        build="language.bert", source="Devlin et al. 2019",
        options={
            "b4": {"batch": 4, "length": 96, "features": 192, "heads": 6},
            "b4-bf16": {"batch": 4, "length": 64, "features": 128, "heads": 4, "dtype": "bfloat16"},
            "b4-train": {"batch": 4, "length": 64, "features": 128, "heads": 4, "optimiser": "adamw"},
        },
    ),
    ZooProgram(
        name="gpt", family="gpt",
        build="language.gpt", source="Radford et al. 2019",
        options={
            "b4": {"batch": 4, "length": 128, "features": 160, "heads": 5},
            "b1-long": {"batch": 1, "length": 384, "features": 96, "heads": 3},
            "b4-train": {"batch": 4, "length": 96, "features": 128, "heads": 4, "optimiser": "adamw"},
        },
    ),
    ZooProgram(
        name="mixture_of_experts", family="mixture_of_experts",
        build="language.mixture_of_experts", source="Fedus et al. 2021",
        options={
            "t512": {"tokens": 512, "features": 96, "experts": 8, "chosen": 2},
            "t256-train": {"tokens": 256, "features": 64, "experts": 4, "chosen": 1, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="encoder_decoder", family="translate",
        build="language.encoder_decoder", source="Vaswani et al. 2017",
        options={
            "b4": {"batch": 4, "length": 64, "features": 128, "heads": 4},
            "b4-train": {"batch": 4, "length": 40, "features": 96, "heads": 4, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="llama", family="llama",
        build="decoding.llama", source="Touvron et al. 2023",
        options={
            "b4": {"batch": 4, "length": 128, "features": 192, "heads": 8, "groups": 2},
            "b2-f16": {
                "batch": 2, "length": 128, "features": 96, "heads": 6, "groups": 2, "dtype": "float16",
            },
            "b2-train": {
                "batch": 2, "length": 96, "features": 144, "heads": 6, "groups": 3, "optimiser": "adamw",
            },
        },
    ),
    ZooProgram(
        name="llama_decode", family="llama",
        build="decoding.llama_decode", source="Touvron et al. 2023",
        options={
            "b8": {"batch": 8, "context": 1024, "features": 256, "heads": 8, "groups": 2},
            "b1-long": {"batch": 1, "context": 4096, "features": 192, "heads": 6, "groups": 2},
        },
    ),
    ZooProgram(
        name="beam_search", family="decoding",
        build="decoding.beam_search", source="Sutskever et al. 2014",
        options={"b4": {"batch": 4, "beams": 4, "vocabulary": 4000, "features": 96, "steps": 12}},
    ),
    ZooProgram(
        name="token_sampling", family="decoding",
        build="decoding.token_sampling", source="Holtzman et al. 2020",
        options={"b8": {"batch": 8, "vocabulary": 32000}, "b2": {"batch": 2, "vocabulary": 16000}},
    ),
    ZooProgram(
        name="resnet_v1", family="resnet_v1",
        build="classifiers.resnet_v1", source="He et al. 2015",
        options={
            "b4": {"batch": 4, "size": 64, "channels": 32},
            "b4-train": {"batch": 4, "size": 48, "channels": 16, "optimiser": "momentum"},
        },
    ),
    ZooProgram(
        name="resnet_v2", family="resnet_v2",
        build="classifiers.resnet_v2", source="He et al. 2016",
        options={
            "b4": {"batch": 4, "size": 32, "channels": 64},
            "b4-train": {"batch": 4, "size": 24, "channels": 48, "optimiser": "momentum"},
        },
    ),
    ZooProgram(
        name="mobilenet", family="mobilenet",
        build="classifiers.mobilenet", source="Howard et al. 2019",
        options={
            "b1": {"batch": 1, "size": 64, "channels": 16},
            "b2-train": {"batch": 2, "size": 32, "channels": 16, "optimiser": "rmsprop"},
        },
    ),
    ZooProgram(
        name="vision_transformer", family="vision_transformer",
        build="classifiers.vision_transformer", source="Dosovitskiy et al. 2021",
        options={
            "b4": {"batch": 4, "size": 96, "patch": 8, "features": 144, "heads": 3},
            "b4-train": {
                "batch": 4, "size": 64, "patch": 8, "features": 96, "heads": 4, "optimiser": "adamw",
            },
        },
    ),
    ZooProgram(
        name="convnext", family="convnext",
        build="classifiers.convnext", source="Woo et al. 2023",
        options={
            "b1": {"batch": 1, "size": 96, "channels": 48},
            "b2-train": {"batch": 2, "size": 48, "channels": 32, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="alexnet", family="alexnet",
        build="classifiers.alexnet", source="Krizhevsky et al. 2012",
        options={
            "b2": {"batch": 2, "size": 48, "channels": 32},
            "b2-train": {"batch": 2, "size": 32, "channels": 24, "optimiser": "momentum"},
        },
    ),
    ZooProgram(
        name="unet", family="unet",
        build="vision.unet", source="Ronneberger et al. 2015",
        options={
            "b1": {"batch": 1, "size": 64, "channels": 16},
            "b1-train": {"batch": 1, "size": 40, "channels": 16, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="ssd", family="ssd",
        build="vision.ssd", source="Liu et al. 2016",
        options={
            "b2": {"batch": 2, "size": 96, "channels": 32},
            "b4-train": {"batch": 4, "size": 64, "channels": 16, "optimiser": "momentum"},
        },
    ),
    ZooProgram(
        name="lstm_language_model", family="recurrent_language_model",
        build="recurrent.language_model", source="Zaremba et al. 2014",
        options={
            "b16": {"cell": "lstm", "batch": 16, "length": 24, "features": 192},
            "b8-train": {"cell": "lstm", "batch": 8, "length": 20, "features": 128, "optimiser": "sgd"},
        },
    ),
    ZooProgram(
        name="gru_language_model", family="recurrent_language_model",
        build="recurrent.language_model", source="Cho et al. 2014",
        options={
            "b16": {"cell": "gru", "batch": 16, "length": 24, "features": 160},
            "b8-train": {"cell": "gru", "batch": 8, "length": 16, "features": 112, "optimiser": "rmsprop"},
        },
    ),
    ZooProgram(
        name="unrolled_lstm", family="recurrent_language_model",
        build="recurrent.unrolled_lstm", source="Hochreiter & Schmidhuber 1997",
        options={"b32": {"batch": 32, "inputs": 96, "features": 256, "steps": 4}},
    ),
    ZooProgram(
        name="wavernn", family="wavernn",
        build="recurrent.wavernn", source="Kalchbrenner et al. 2018",
        options={
            "b8": {"batch": 8, "length": 24, "features": 224},
            "b4-train": {"batch": 4, "length": 16, "features": 160, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="wavernn_sample", family="wavernn",
        build="recurrent.wavernn_sample", source="Kalchbrenner et al. 2018",
        options={"b8": {"batch": 8, "length": 24, "features": 160}},
    ),
    ZooProgram(
        name="char2feats", family="char2feats",
        build="recurrent.char2feats", source="Wang et al. 2017",
        options={
            "b8": {"batch": 8, "characters": 48, "frames": 80, "features": 128},
            "b4-train": {"batch": 4, "characters": 32, "frames": 64, "features": 96, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="translation", family="nmt",
        build="recurrent.translation", source="Bahdanau et al. 2015",
        options={
            "b16": {"batch": 16, "length": 20, "features": 160},
            "b8-train": {"batch": 8, "length": 12, "features": 96, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="mamba", family="state_space",
        build="recurrent.mamba", source="Gu & Dao 2023",
        options={
            "b2": {"batch": 2, "length": 128, "features": 96, "states": 16},
            "b2-train": {"batch": 2, "length": 32, "features": 96, "states": 8, "optimiser": "adamw"},
        },
    ),
    ZooProgram(
        name="vae", family="vae",
        build="generative.vae", source="Kingma & Welling 2014",
        options={
            "b64": {"batch": 64, "pixels": 784, "hidden": 256, "latent": 16},
            "b64-train": {"batch": 64, "pixels": 784, "hidden": 128, "latent": 8, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="convdraw", family="convdraw",
        build="generative.convdraw", source="Gregor et al. 2016",
        options={
            "b4": {"batch": 4, "size": 32, "channels": 24, "steps": 3},
            "b4-train": {"batch": 4, "size": 32, "channels": 16, "steps": 2, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="diffusion", family="diffusion",
        build="generative.diffusion", source="Ho et al. 2020",
        options={
            "b2": {"batch": 2, "size": 16, "channels": 64},
            "b1-wide": {"batch": 1, "size": 32, "channels": 32},
            "b2-train": {"batch": 2, "size": 16, "channels": 32, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="gan", family="gan",
        build="generative.gan", source="Radford et al. 2016",
        options={
            "b8": {"batch": 8, "size": 48, "channels": 32},
            "b4-train": {"batch": 4, "size": 32, "channels": 16, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="radiance_field", family="radiance_field",
        build="generative.radiance_field", source="Mildenhall et al. 2020",
        options={
            "r256": {"rays": 256, "samples": 32, "features": 64},
            "r128-train": {"rays": 128, "samples": 32, "features": 48, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="vector_quantiser", family="vector_quantiser",
        build="generative.vector_quantiser", source="van den Oord et al. 2017",
        options={
            "b4": {"batch": 4, "size": 16, "features": 32, "codes": 256},
            "b1": {"batch": 1, "size": 24, "features": 48, "codes": 100},
        },
    ),
    ZooProgram(
        name="coupling_flow", family="normalising_flow",
        build="generative.coupling_flow", source="Dinh et al. 2017",
        options={
            "b512": {"batch": 512, "features": 64, "hidden": 128},
            "b256-train": {"batch": 256, "features": 48, "hidden": 96, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="dlrm", family="dlrm",
        build="ranking.dlrm", source="Naumov et al. 2019",
        options={
            "b512": {"batch": 512, "tables": 8, "rows": 2000, "features": 32},
            "b256-train": {"batch": 256, "tables": 6, "rows": 1000, "features": 16, "optimiser": "adagrad"},
        },
    ),
    ZooProgram(
        name="two_tower", family="two_tower",
        build="ranking.two_tower", source="Yi et al. 2019",
        options={
            "b256": {"batch": 256, "rows": 3000, "features": 64},
            "b192-train": {"batch": 192, "rows": 1500, "features": 48, "optimiser": "adagrad"},
        },
    ),
    ZooProgram(
        name="deep_cross", family="deep_cross",
        build="ranking.deep_cross", source="Wang et al. 2021",
        options={
            "b512": {"batch": 512, "features": 256},
            "b256-train": {"batch": 256, "features": 160, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="contrastive", family="contrastive",
        build="ranking.contrastive", source="Chen et al. 2020",
        options={"b192": {"batch": 192, "features": 64}, "b320": {"batch": 320, "features": 32}},
    ),
    ZooProgram(
        name="policy_gradient", family="reinforcement",
        build="ranking.policy_gradient", source="Schulman et al. 2017",
        options={
            "e64": {"environments": 64, "steps": 64, "features": 24},
            "e48-train": {"environments": 48, "steps": 48, "features": 16, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="adam", family="optimiser",
        build="optimisers.update", source="Kingma & Ba 2015",
        options={
            "160": {"optimiser": "adam", "features": 160},
            "320": {"optimiser": "adam", "features": 320},
        },
    ),
    ZooProgram(
        name="adamw", family="optimiser",
        build="optimisers.update", source="Loshchilov & Hutter 2019",
        options={"224": {"optimiser": "adamw", "features": 224}},
    ),
    ZooProgram(
        name="nesterov", family="optimiser",
        build="optimisers.update", source="Sutskever et al. 2013",
        options={"256": {"optimiser": "momentum", "features": 256}},
    ),
    ZooProgram(
        name="adafactor", family="optimiser",
        build="optimisers.adafactor", source="Shazeer & Stern 2018",
        options={"256": {"features": 256}, "180": {"features": 180}},
    ),
    ZooProgram(
        name="lamb", family="optimiser",
        build="optimisers.lamb", source="You et al. 2020",
        options={"224": {"features": 224}},
    ),
    ZooProgram(
        name="shampoo", family="optimiser",
        build="optimisers.shampoo_statistics", source="Gupta et al. 2018",
        options={"192": {"features": 192}},
    ),
    ZooProgram(
        name="mixed_precision", family="optimiser",
        build="optimisers.mixed_precision", source="Micikevicius et al. 2018",
        options={"288": {"features": 288}},
    ),
    ZooProgram(
        name="message_passing", family="graph_network",
        build="graphs.message_passing", source="Battaglia et al. 2018",
        options={
            "n800": {"nodes": 800, "edges": 4000, "features": 48},
            "n400-train": {"nodes": 400, "edges": 1600, "features": 32, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="graph_convolution", family="graph_network",
        build="graphs.graph_convolution", source="Kipf & Welling 2017",
        options={
            "n1500": {"nodes": 1500, "edges": 6000, "features": 64},
            "n800-train": {"nodes": 800, "edges": 3200, "features": 48, "optimiser": "adam"},
        },
    ),
    ZooProgram(
        name="graph_attention", family="graph_network",
        build="graphs.graph_attention", source="Veličković et al. 2018",
        options={"n600": {"nodes": 600, "edges": 3000, "features": 24, "heads": 4}},
    ),
    ZooProgram(
        name="lennard_jones", family="molecular_dynamics",
        build="physics.lennard_jones", source="Lennard-Jones 1924",
        options={"256": {"particles": 256, "box": 8.0}, "400": {"particles": 400, "box": 10.0}},
    ),
    ZooProgram(
        name="neighbour_forces", family="molecular_dynamics",
        build="physics.neighbour_forces", source="Verlet 1967",
        options={"1000": {"particles": 1000, "neighbours": 24}},
    ),
    ZooProgram(
        name="shallow_water", family="shallow_water",
        build="physics.shallow_water", source="Saint-Venant 1871",
        options={
            "256x384": {"rows": 256, "columns": 384, "steps": 2},
            "200x200": {"rows": 200, "columns": 200, "steps": 1},
        },
    ),
    ZooProgram(
        name="lattice_boltzmann", family="lattice_boltzmann",
        build="physics.lattice_boltzmann", source="Qian et al. 1992",
        options={"200x256": {"rows": 200, "columns": 256}, "100x100": {"rows": 100, "columns": 100}},
    ),
    ZooProgram(
        name="wave_equation", family="wave_equation",
        build="physics.wave_equation", source="finite differences in time and space",
        options={"48": {"size": 48, "steps": 8}, "64": {"size": 64, "steps": 3}},
    ),
    ZooProgram(
        name="reaction_diffusion", family="reaction_diffusion",
        build="physics.reaction_diffusion", source="Gray & Scott 1984",
        options={"256": {"size": 256}, "200-bf16": {"size": 200, "dtype": "bfloat16"}},
    ),
    ZooProgram(
        name="rigid_rotations", family="rigid_body",
        build="physics.rigid_rotations", source="Euler's equations",
        options={"12000": {"bodies": 12000}},
    ),
    ZooProgram(
        name="blur_and_edges", family="image_filter",
        build="imaging.blur_and_edges", source="Sobel 1968",
        options={
            "384": {"size": 384, "radius": 3},
            "256-f16": {"size": 256, "radius": 2, "dtype": "float16"},
        },
    ),
    ZooProgram(
        name="bilateral_filter", family="image_filter",
        build="imaging.bilateral_filter", source="Tomasi & Manduchi 1998",
        options={
            "96x128": {"height": 96, "width": 128, "radius": 2},
            "160x120": {"height": 160, "width": 120, "radius": 1},
        },
    ),
    ZooProgram(
        name="colour_jitter", family="augmentation",
        build="imaging.colour_jitter", source="Chen et al. 2020",
        options={"b8": {"batch": 8, "size": 128}, "b32": {"batch": 32, "size": 48}},
    ),
    ZooProgram(
        name="bilinear_warp", family="augmentation",
        build="imaging.bilinear_warp", source="Jaderberg et al. 2015",
        options={
            "256x320": {"height": 256, "width": 320, "channels": 3},
            "96x96": {"height": 96, "width": 96, "channels": 16},
        },
    ),
    ZooProgram(
        name="structural_similarity", family="image_metric",
        build="imaging.structural_similarity", source="Wang et al. 2004",
        options={"256": {"size": 256}},
    ),
    ZooProgram(
        name="distance_transform", family="morphology",
        build="imaging.distance_transform", source="Borgefors 1986",
        options={"320": {"size": 320}, "200": {"size": 200}},
    ),
    ZooProgram(
        name="mel_spectrogram", family="spectral",
        build="signals.mel_spectrogram", source="Davis & Mermelstein 1980",
        options={
            "b4": {"batch": 4, "samples": 32000, "window": 400, "bands": 40},
            "b8": {"batch": 8, "samples": 8192, "window": 256, "bands": 24},
        },
    ),
    ZooProgram(
        name="fourier_filter", family="spectral",
        build="signals.fourier_filter", source="Wiener 1949",
        options={"256": {"size": 256}},
    ),
    ZooProgram(
        name="power_iteration", family="linear_algebra",
        build="linear_algebra.power_iteration", source="Miyato et al. 2018",
        options={"1024x768": {"rows": 1024, "columns": 768, "steps": 3}},
    ),
    ZooProgram(
        name="conjugate_gradient", family="linear_algebra",
        build="linear_algebra.conjugate_gradient", source="Hestenes & Stiefel 1952",
        options={"256": {"size": 256, "steps": 20}, "400": {"size": 400, "steps": 6}},
    ),
    ZooProgram(
        name="householder_qr", family="factorisation",
        build="linear_algebra.householder_qr", source="Householder 1958",
        options={"256x48": {"rows": 256, "columns": 48}},
    ),
    ZooProgram(
        name="column_cholesky", family="factorisation",
        build="linear_algebra.column_cholesky", source="Cholesky 1924",
        options={"64": {"size": 64}, "128": {"size": 128}},
    ),
    ZooProgram(
        name="newton_schulz", family="linear_algebra",
        build="linear_algebra.newton_schulz", source="Jordan 2024",
        options={
            "192": {"size": 192, "steps": 3},
            "160-bf16": {"size": 160, "steps": 2, "dtype": "bfloat16"},
        },
    ),
    ZooProgram(
        name="sparse_product", family="sparse",
        build="linear_algebra.sparse_product", source="Page et al. 1998",
        options={"8000": {"rows": 8000, "nonzeros": 30000, "columns": 16}},
    ),
    ZooProgram(
        name="low_rank_adaptation", family="quantised",
        build="linear_algebra.low_rank_adaptation", source="Dettmers et al. 2023",
        options={
            "256": {"rows": 256, "features": 512, "rank": 8},
            "192-bf16": {"rows": 192, "features": 384, "rank": 4, "dtype": "bfloat16"},
        },
    ),
    ZooProgram(
        name="quantised_dense", family="quantised",
        build="linear_algebra.quantised_dense", source="Jacob et al. 2018",
        options={"256": {"rows": 256, "features": 512}},
    ),
    ZooProgram(
        name="black_scholes", family="option_pricing",
        build="finance.black_scholes", source="Black & Scholes 1973",
        options={"100000": {"options": 100000}, "20000-bf16": {"options": 20000, "dtype": "bfloat16"}},
    ),
    ZooProgram(
        name="monte_carlo", family="option_pricing",
        build="finance.monte_carlo", source="Boyle 1977",
        options={"1000": {"paths": 1000, "steps": 50}},
    ),
    ZooProgram(
        name="heston", family="option_pricing",
        build="finance.heston", source="Heston 1993",
        options={"8000": {"paths": 8000, "steps": 24}},
    ),
    ZooProgram(
        name="garch", family="time_series",
        build="finance.garch", source="Bollerslev 1986",
        options={"1024": {"series": 1024, "steps": 40}},
    ),
    ZooProgram(
        name="kalman_filter", family="time_series",
        build="finance.kalman_filter", source="Kalman 1960",
        options={"1500": {"tracks": 1500, "steps": 30}},
    ),
    ZooProgram(
        name="kmeans", family="clustering",
        build="statistics.kmeans", source="Lloyd 1982",
        options={
            "4000": {"points": 4000, "features": 16, "clusters": 24},
            "2000-wide": {"points": 2000, "features": 64, "clusters": 10},
        },
    ),
    ZooProgram(
        name="gaussian_mixture", family="clustering",
        build="statistics.gaussian_mixture", source="Dempster et al. 1977",
        options={"4000": {"points": 4000, "features": 8, "components": 12}},
    ),
    ZooProgram(
        name="logistic_regression", family="regression",
        build="statistics.logistic_regression", source="Zou & Hastie 2005",
        options={
            "2000": {"rows": 2000, "features": 128, "classes": 16},
            "5000": {"rows": 5000, "features": 40, "classes": 5},
        },
    ),
    ZooProgram(
        name="moments", family="statistics",
        build="statistics.moments", source="Pearson 1895",
        options={"1024x512": {"rows": 1024, "columns": 512}, "600x300": {"rows": 600, "columns": 300}},
    ),
    ZooProgram(
        name="conditional_random_field", family="sequence_labelling",
        build="statistics.conditional_random_field", source="Lafferty et al. 2001",
        options={"b32": {"batch": 32, "length": 24, "tags": 32}},
    ),
    ZooProgram(
        name="gaussian_process", family="kernel_method",
        build="statistics.gaussian_process", source="Rasmussen & Williams 2006",
        options={"256": {"points": 256, "features": 6}, "160-wide": {"points": 160, "features": 20}},
    ),
)  # fmt: skip
