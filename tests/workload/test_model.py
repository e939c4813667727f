"""Models: parameter counts to the digit, FLOPs by closed form, and configs that are wrong or
hostile."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.catalog.load import catalog
from eastwest.catalog.world import shared_nominal
from eastwest.errors import UserError
from eastwest.workload.model import (
    FAMILIES,
    active_parameters,
    forward_FLOPs_per_token,
    load_model,
    model_from_config,
    parameters,
)
from eastwest.workload.shapes import training_FLOPs_per_token

CONFIGS = Path(__file__).parents[2] / "../shared/samples/hf-config"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}


def neox(hidden: int = 4096, **more: Any) -> dict[str, Any]:
    shape = {"hidden_size": hidden, "num_hidden_layers": 32, "num_attention_heads": 32}
    return {
        **shape,
        "intermediate_size": 4 * hidden,
        "vocab_size": 50432,
        "model_type": "gpt_neox",
        **more,
    }


# Published counts: model cards, and the number of elements in the published weights.
PUBLISHED = {
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-2-7b": 6_738_415_616,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "qwen3-8b": 8_190_735_360,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "deepseek-v3": 671_026_419_200,
}
SAMPLES = {
    "meta-llama--Meta-Llama-3.1-8B": 8_030_261_248,
    "meta-llama--Meta-Llama-3.1-70B": 70_553_706_496,
    "meta-llama--Meta-Llama-3.1-405B": 405_853_388_800,
    "mistralai--Mixtral-8x22B-v0.1": 140_620_634_112,
    "Qwen--Qwen3-8B": 8_190_735_360,
    "deepseek-ai--DeepSeek-V3": 671_026_419_200,
}


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_a_catalog_model_has_the_published_parameters_to_the_digit(name: str, count: int):
    assert parameters(load_model(name, shared_nominal())) == count


@pytest.mark.parametrize("name", catalog().ids("model"))
def test_every_catalog_model_counts_what_the_catalog_says(name: str):
    world = shared_nominal()
    assert parameters(load_model(name, world)) == world.number("model", name, "parameters")


@pytest.mark.parametrize(("name", "count"), SAMPLES.items())
def test_a_real_config_json_gives_the_published_parameters(name: str, count: int):
    path = CONFIGS / f"{name}_config.json"
    if not path.exists():
        pytest.skip("no collected configs beside the project")
    assert parameters(load_model(str(path), shared_nominal())) == count


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (neox(), 6_857_302_016),  # Pythia 6.9B
        (
            {
                "model_type": "opt",
                "hidden_size": 4096,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "ffn_dim": 16384,
                "vocab_size": 50272,
                "max_position_embeddings": 2048,
            },
            6_658_473_984,  # OPT 6.7B
        ),
        (
            {
                "model_type": "falcon",
                "hidden_size": 4544,
                "num_hidden_layers": 32,
                "num_attention_heads": 71,
                "vocab_size": 65024,
                "multi_query": True,
                "parallel_attn": True,
                "bias": False,
            },
            6_921_720_704,  # Falcon 7B
        ),
        (
            {
                "model_type": "gemma",
                "hidden_size": 3072,
                "num_hidden_layers": 28,
                "num_attention_heads": 16,
                "num_key_value_heads": 16,
                "head_dim": 256,
                "intermediate_size": 24576,
                "vocab_size": 256000,
            },
            8_537_680_896,  # Gemma 7B
        ),
        (
            {
                "model_type": "gemma2",
                "hidden_size": 3584,
                "num_hidden_layers": 42,
                "num_attention_heads": 16,
                "num_key_value_heads": 8,
                "head_dim": 256,
                "intermediate_size": 14336,
                "vocab_size": 256000,
            },
            9_241_705_984,  # Gemma 2 9B
        ),
        (
            {
                "model_type": "qwen2",
                "hidden_size": 3584,
                "num_hidden_layers": 28,
                "num_attention_heads": 28,
                "num_key_value_heads": 4,
                "intermediate_size": 18944,
                "vocab_size": 152064,
            },
            7_615_616_512,  # Qwen2 7B
        ),
        (
            {
                "model_type": "mistral",
                "hidden_size": 4096,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "intermediate_size": 14336,
                "vocab_size": 32000,
            },
            7_241_732_096,  # Mistral 7B
        ),
        (
            {
                "model_type": "phi3",
                "hidden_size": 3072,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 32,
                "intermediate_size": 8192,
                "vocab_size": 32064,
            },
            3_821_079_552,  # Phi-3 mini
        ),
        (
            {
                "model_type": "qwen2_moe",
                "hidden_size": 2048,
                "num_hidden_layers": 24,
                "num_attention_heads": 16,
                "num_key_value_heads": 16,
                "intermediate_size": 5632,
                "vocab_size": 151936,
                "num_experts": 60,
                "num_experts_per_tok": 4,
                "moe_intermediate_size": 1408,
                "shared_expert_intermediate_size": 5632,
            },
            14_315_784_192,  # Qwen1.5-MoE-A2.7B
        ),
        (
            {
                "model_type": "deepseek_v2",
                "hidden_size": 2048,
                "num_hidden_layers": 27,
                "num_attention_heads": 16,
                "num_key_value_heads": 16,
                "intermediate_size": 10944,
                "vocab_size": 102400,
                "n_routed_experts": 64,
                "n_shared_experts": 2,
                "num_experts_per_tok": 6,
                "moe_intermediate_size": 1408,
                "kv_lora_rank": 512,
                "q_lora_rank": None,
                "qk_nope_head_dim": 128,
                "qk_rope_head_dim": 64,
                "v_head_dim": 128,
                "first_k_dense_replace": 1,
            },
            15_706_484_224,  # DeepSeek-V2-Lite
        ),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_a_family_counts_as_its_published_weights(config: dict[str, Any], count: int):
    assert parameters(model_from_config(config)) == count


def test_active_parameters_are_those_that_a_token_meets():
    world = shared_nominal()
    assert (
        active_parameters(load_model("mixtral-8x7b", world)) == 12_879_925_248
    )  # Mixtral paper: 13 B
    assert active_parameters(load_model("deepseek-v3", world)) == pytest.approx(
        37e9, rel=0.02
    )  # its paper: 37 B
    assert active_parameters(load_model("llama-3-8b", world)) == 8_030_261_248


def test_training_takes_six_FLOPs_a_parameter_and_token_beside_attention():
    model = load_model("llama-3-70b", shared_nominal())
    attention = 3 * model.layers * 2 * 8192 * model.hidden  # 2 s h forward, causal
    counted = 6 * (
        parameters(model) - model.vocab * model.hidden
    )  # a look-up in the embedding multiplies nothing
    vectors = 6 * (2 * model.layers + 1) * model.hidden
    assert training_FLOPs_per_token(model, 8192) == pytest.approx(
        counted - vectors + attention, rel=1e-12
    )
    assert training_FLOPs_per_token(model, 1) == pytest.approx(6 * 70.55e9, rel=0.02)


def test_llama_405b_takes_the_published_FLOPs():
    """The Llama 3 paper gives 3.8e25 FLOPs for 15.6 T tokens, most of them in sequences of
    8,192."""
    model = load_model("llama-3.1-405b", shared_nominal())
    assert training_FLOPs_per_token(model, 8192) * 15.6e12 == pytest.approx(3.8e25, rel=0.05)


def test_recomputation_adds_one_forward_pass():
    model = load_model("gpt2", shared_nominal())
    forward = forward_FLOPs_per_token(model, 1024)
    assert (
        training_FLOPs_per_token(model, 1024, "full") - training_FLOPs_per_token(model, 1024)
        == forward
    )


def test_missing_keys_are_told_together():
    config = {k: v for k, v in LLAMA.items() if k not in ("vocab_size", "intermediate_size")}
    with pytest.raises(UserError) as caught:
        model_from_config(config, "m/config.json")
    assert str(caught.value) == (
        "m/config.json: the model's config lacks intermediate_size, vocab_size (a Hugging Face "
        "config.json has them)"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": "4096"}, "c: hidden_size: expected a whole number, not '4096'"),
        ({"hidden_size": -4096}, "c: hidden_size: -4096 is not between 1 and 10,000,000"),
        ({"num_hidden_layers": 0}, "c: num_hidden_layers: 0 is not between 1 and 10,000"),
        (
            {"num_hidden_layers": 1_000_000},
            "c: num_hidden_layers: 1000000 is not between 1 and 10,000",
        ),
        ({"vocab_size": math.nan}, "c: vocab_size: expected a whole number, not nan"),
        ({"vocab_size": math.inf}, "c: vocab_size: expected a whole number, not inf"),
        (
            {"vocab_size": 10**30},
            "c: vocab_size: a number of 10^15 or more is not between 1 and 10,000,000",
        ),
        (
            {"vocab_size": 10**400},
            "c: vocab_size: expected a whole number, not a number of 10^15 or more",
        ),
        ({"vocab_size": True}, "c: vocab_size: expected a whole number, not True"),
        ({"vocab_size": [1]}, "c: vocab_size: expected a whole number, not a list"),
        (
            {"num_attention_heads": 24},
            "c: num_attention_heads: 24 heads do not divide hidden_size 4096",
        ),
        (
            {"num_key_value_heads": 5},
            "c: num_key_value_heads: 5 does not divide 32 attention heads",
        ),
        (
            {"tie_word_embeddings": "maybe"},
            "c: tie_word_embeddings: expected true or false, not 'maybe'",
        ),
        (
            {"model_type": "lama"},
            "c: model_type: unknown model_type 'lama' (did you mean 'llama'?)",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(change: dict[str, Any], message: str):
    with pytest.raises(UserError) as caught:
        model_from_config({**LLAMA, **change}, "c")
    assert str(caught.value) == message


def test_more_experts_a_token_than_there_are_is_refused():
    config = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 5}
    with pytest.raises(UserError, match="5 experts a token, but there are only 4"):
        model_from_config(config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"a":' * 100_000, "nested too deep"),
        ("[1, 2]", "expected a mapping"),
        ("1" * 5000, "is not JSON"),
        ("{}", "must name its model_type"),
        ('{"model_type": ["llama"]}', "must name its model_type"),
    ],
    ids=["cut off", "lists", "mappings", "a list", "a long number", "empty", "a list for a name"],
)
def test_a_file_that_is_no_config_is_refused_with_its_path(tmp_path: Path, text: str, message: str):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        load_model(str(path), shared_nominal())
    assert str(caught.value).startswith(str(path))


def test_a_path_is_relative_to_the_given_folder(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    model = load_model("./config.json", shared_nominal(), tmp_path)
    assert parameters(model) == 8_030_261_248
    assert model.name == tmp_path.name


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(
        UserError, match=r"unknown model 'llama-3-70' \(did you mean 'llama-3-70b'\?\)"
    ):
        load_model("llama-3-70", shared_nominal())


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.integers(1, 300),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
)
KEYS = sorted(
    {
        *LLAMA,
        "n_embd",
        "n_layer",
        "n_head",
        "n_positions",
        "head_dim",
        "num_experts",
        "num_experts_per_tok",
        "num_local_experts",
        "moe_intermediate_size",
        "mlp_only_layers",
        "decoder_sparse_step",
        "kv_lora_rank",
        "q_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "v_head_dim",
        "n_routed_experts",
        "n_shared_experts",
        "first_k_dense_replace",
        "moe_layer_freq",
        "ffn_dim",
        "max_position_embeddings",
        "tie_word_embeddings",
        "bias",
    }
    - {"model_type"}
)


@settings(deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.dictionaries(st.sampled_from(KEYS), JUNK))
def test_any_config_gives_a_model_with_parameters_or_one_error(family: str, config: dict[str, Any]):
    try:
        model = model_from_config({**config, "model_type": family}, "config.json")
    except UserError as error:
        told = str(error)
    else:
        told = "config.json"
        assert parameters(model) >= active_parameters(model) > 0
        assert math.isfinite(forward_FLOPs_per_token(model, 4096))
    assert told.startswith("config.json")
