"""Families decide splits, so they must never change: this is the list, written down a second time."""

from kernelcast import zoo

# A program that is added gets a new line; no name moves to another family.
FAMILIES = {
    "nbody": "nbody",
    "kernel_method": "rbf gaussian_process",
    "heat": "stencil",
    "normalisation": "groupnorm_silu layernorm_backward",
    "total_variation": "squared_differences",
    "llama": "rmsnorm_rotary llama llama_decode",
    "softmax": "double_softmax",
    "simple_rnn": "scan_gradient",
    "transformer": "transformer_train",
    "bert": "bert",
    "gpt": "gpt",
    "mixture_of_experts": "mixture_of_experts",
    "translate": "encoder_decoder",
    "decoding": "beam_search token_sampling",
    "resnet_v1": "resnet_v1",
    "resnet_v2": "resnet_v2",
    "mobilenet": "mobilenet",
    "vision_transformer": "vision_transformer",
    "convnext": "convnext",
    "alexnet": "alexnet",
    "unet": "unet",
    "ssd": "ssd",
    "recurrent_language_model": "lstm_language_model gru_language_model unrolled_lstm",
    "wavernn": "wavernn wavernn_sample",
    "char2feats": "char2feats",
    "nmt": "translation",
    "state_space": "mamba",
    "vae": "vae",
    "convdraw": "convdraw",
    "diffusion": "diffusion",
    "gan": "gan",
    "radiance_field": "radiance_field",
    "vector_quantiser": "vector_quantiser",
    "normalising_flow": "coupling_flow",
    "dlrm": "dlrm",
    "two_tower": "two_tower",
    "deep_cross": "deep_cross",
    "contrastive": "contrastive",
    "reinforcement": "policy_gradient",
    "optimiser": "adam adamw nesterov adafactor lamb shampoo mixed_precision",
    "graph_network": "message_passing graph_convolution graph_attention",
    "molecular_dynamics": "lennard_jones neighbour_forces",
    "shallow_water": "shallow_water",
    "lattice_boltzmann": "lattice_boltzmann",
    "wave_equation": "wave_equation",
    "reaction_diffusion": "reaction_diffusion",
    "rigid_body": "rigid_rotations",
    "image_filter": "blur_and_edges bilateral_filter",
    "augmentation": "colour_jitter bilinear_warp",
    "image_metric": "structural_similarity",
    "morphology": "distance_transform",
    "spectral": "mel_spectrogram fourier_filter",
    "linear_algebra": "power_iteration conjugate_gradient newton_schulz",
    "factorisation": "householder_qr column_cholesky",
    "sparse": "sparse_product",
    "quantised": "low_rank_adaptation quantised_dense",
    "option_pricing": "black_scholes monte_carlo heston",
    "time_series": "garch kalman_filter",
    "clustering": "kmeans gaussian_mixture",
    "regression": "logistic_regression",
    "statistics": "moments",
    "sequence_labelling": "conditional_random_field",
}


def test_families_are_what_they_were() -> None:
    expected = {name: family for family, names in FAMILIES.items() for name in names.split()}
    assert {program.name: program.family for program in zoo.programs()} == expected


def test_the_zoo_is_as_large_as_promised() -> None:
    assert len(zoo.programs()) >= 36
    assert len(FAMILIES) >= 18
    assert len(zoo.variants()) >= 100
