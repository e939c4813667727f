"""Models by name or from a Hugging Face config.json. One idea: read what the file says, refuse what
it does not say.

A default stands only where the family's own configuration class has one; an unknown ``model_type``
is never guessed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from eastwest.catalog.world import World
from eastwest.errors import UserError, unknown_name
from eastwest.files import read_text
from eastwest.workload.shapes import Model, active_parameters, forward_FLOPs_per_token, parameters

# Wider or deeper than this is a slip of the keyboard, and keeps all products finite.
LARGEST, DEEPEST = 10**7, 10**4


class Keys:
    """The values of a config.json, each checked as it is read; missing keys are gathered and told
    together."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self.config, self.where = config, where
        self.missing: list[str] = []

    def refuse(self, key: str, what: str, hint: str = "") -> UserError:
        """Return the error for a key, with its place."""
        return UserError(what, f"{self.where}: {key}" if self.where else key, hint)

    def count(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """Return the whole number under the first name that is given; ``null`` counts as not
        given."""
        for name in names:
            value = self.config.get(name)
            if value is not None:
                return self._whole(name, value, least)
        if default is None:
            self.missing.append(" or ".join(names))
            return 1
        return default

    def _whole(self, name: str, value: object, least: int) -> int:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if (
            not number
            or not math.isfinite(_as_float(value))
            or _as_float(value) != int(_as_float(value))
        ):
            raise self.refuse(name, f"expected a whole number, not {shown(value)}")
        most = DEEPEST if "layer" in name else LARGEST
        if not least <= _as_float(value) <= most:
            raise self.refuse(name, f"{shown(value)} is not between {least} and {most:,}")
        return int(_as_float(value))

    def flag(self, name: str, default: bool) -> bool:
        """Return a truth value; the catalog writes it as text."""
        value = self.config.get(name)
        if value is None:
            return default
        if isinstance(value, str) and value in ("true", "false"):
            return value == "true"
        if not isinstance(value, bool):
            raise self.refuse(name, f"expected true or false, not {shown(value)}")
        return value

    def done(self) -> None:
        """Raise UserError if keys are missing, naming them all."""
        if self.missing:
            names = ", ".join(self.missing)
            raise UserError(
                f"the model's config lacks {names}",
                self.where,
                "a Hugging Face config.json has them",
            )


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return math.inf


def shown(value: object) -> str:
    """Write a value of any kind on one short line.

    ``value`` is anything that stood in a config.
    """
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**15:
        return "a number of 10^15 or more" if value > 0 else "a number of -10^15 or less"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _decoder(keys: Keys, family: str) -> Model:
    """Read what all families that descend from Llama share."""
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    kv_heads = keys.count("num_key_value_heads", default=heads)
    head_dim = keys.count("head_dim", default=hidden // heads or 1)
    if not keys.missing and keys.config.get("head_dim") is None and hidden % heads:
        raise keys.refuse(
            "num_attention_heads", f"{heads} heads do not divide hidden_size {hidden}"
        )
    return Model(
        name="",
        family=family,
        layers=keys.count("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=keys.count("intermediate_size"),
        vocab=keys.count("vocab_size"),
        tied=keys.flag("tie_word_embeddings", False),
    )


def _llama(keys: Keys, family: str) -> Model:
    bias = keys.flag("attention_bias", False)
    return replace(
        _decoder(keys, family),
        qkv_bias=bias,
        output_bias=bias,
        ffn_bias=keys.flag("mlp_bias", False),
    )


def _plain(keys: Keys, family: str) -> Model:
    return _decoder(keys, family)


def _mixtral(keys: Keys, family: str) -> Model:
    model = _decoder(keys, family)
    active = keys.count("num_experts_per_tok")
    return replace(
        model, experts=keys.count("num_local_experts"), active_experts=active, expert_ffn=model.ffn
    )


def _qwen2(keys: Keys, family: str) -> Model:
    return replace(_decoder(keys, family), qkv_bias=True)


def _qwen3(keys: Keys, family: str) -> Model:
    bias = keys.flag("attention_bias", False)
    dim = keys.count(
        "head_dim", default=128
    )  # the default of Qwen3Config, whatever the hidden size
    keys.config = {**keys.config, "head_dim": dim}
    return replace(_decoder(keys, family), qk_norm=True, qkv_bias=bias, output_bias=bias)


def _sparse(keys: Keys, model: Model) -> Model:
    """Add Qwen's experts: every ``decoder_sparse_step``-th layer has them, but those in
    ``mlp_only_layers``."""
    step, only = (
        keys.count("decoder_sparse_step", default=1),
        keys.config.get("mlp_only_layers") or [],
    )
    if not isinstance(only, list) or not all(isinstance(i, int) for i in only):
        raise keys.refuse("mlp_only_layers", f"expected a list of layers, not {shown(only)}")
    sparse = model.layers // step
    skipped = set(only)
    if only:
        sparse = sum((i + 1) % step == 0 and i not in skipped for i in range(model.layers))
    return replace(
        model,
        experts=keys.count("num_experts"),
        active_experts=keys.count("num_experts_per_tok"),
        expert_ffn=keys.count("moe_intermediate_size"),
        dense_layers=model.layers - sparse,
    )


def _qwen2_moe(keys: Keys, family: str) -> Model:
    shared = keys.count("shared_expert_intermediate_size", least=0)
    return replace(_sparse(keys, _qwen2(keys, family)), shared_ffn=shared, shared_gate=True)


def _qwen3_moe(keys: Keys, family: str) -> Model:
    return _sparse(keys, _qwen3(keys, family))


def _gpt2(keys: Keys, family: str) -> Model:
    hidden, heads = keys.count("n_embd", "hidden_size"), keys.count("n_head", "num_attention_heads")
    if not keys.missing and hidden % heads:
        raise keys.refuse("n_head", f"{heads} heads do not divide n_embd {hidden}")
    return Model(
        name="",
        family=family,
        layers=keys.count("n_layer", "num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads or 1,
        ffn=keys.count("n_inner", default=4 * hidden),
        vocab=keys.count("vocab_size"),
        gated=False,
        tied=keys.flag("tie_word_embeddings", True),
        positions=keys.count("n_positions", "n_ctx", "max_position_embeddings"),
        qkv_bias=True,
        output_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )


def _gpt_neox(keys: Keys, family: str) -> Model:
    bias = keys.flag("attention_bias", True)
    return replace(
        _decoder(keys, family),
        gated=False,
        qkv_bias=bias,
        output_bias=bias,
        ffn_bias=True,
        norm_bias=True,
    )


def _opt(keys: Keys, family: str) -> Model:
    keys.config = {**keys.config, "intermediate_size": keys.config.get("ffn_dim")}
    if keys.config["intermediate_size"] is None:
        keys.missing.append("ffn_dim")
        keys.config = {**keys.config, "intermediate_size": 1}
    model = _decoder(keys, family)
    if keys.count("word_embed_proj_dim", default=model.hidden) != model.hidden:
        raise keys.refuse(
            "word_embed_proj_dim", "embeddings narrower than the model are not supported"
        )
    positions = keys.count("max_position_embeddings") + 2  # OPT keeps two rows for padding
    return replace(
        model,
        gated=False,
        tied=keys.flag("tie_word_embeddings", True),
        positions=positions,
        qkv_bias=True,
        output_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )


def _falcon(keys: Keys, family: str) -> Model:
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads", "n_head")
    if not keys.missing and hidden % heads:
        raise keys.refuse(
            "num_attention_heads", f"{heads} heads do not divide hidden_size {hidden}"
        )
    new, query = keys.flag("new_decoder_architecture", False), keys.flag("multi_query", True)
    kv_heads = (
        keys.count("num_kv_heads", "n_head_kv", default=heads) if new else 1 if query else heads
    )
    bias = keys.flag("bias", False)
    return Model(
        name="",
        family=family,
        layers=keys.count("num_hidden_layers", "n_layer"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=hidden // heads or 1,
        ffn=keys.count("ffn_hidden_size", default=4 * hidden),
        vocab=keys.count("vocab_size"),
        gated=False,
        tied=keys.flag("tie_word_embeddings", True),
        norms=2 if new or not keys.flag("parallel_attn", True) else 1,
        qkv_bias=bias,
        output_bias=bias,
        ffn_bias=bias,
        norm_bias=True,
    )


def _gemma(keys: Keys, family: str) -> Model:
    keys.count("head_dim")  # Gemma's heads are wider than hidden / heads
    keys.config = {"tie_word_embeddings": True, **keys.config}
    return replace(_llama(keys, family), norms=4 if family == "gemma2" else 2)


def _deepseek(keys: Keys, family: str) -> Model:
    nope, rope = keys.count("qk_nope_head_dim"), keys.count("qk_rope_head_dim")
    keys.config = {**keys.config, "head_dim": nope + rope}
    model, expert_ffn = _decoder(keys, family), keys.count("moe_intermediate_size")
    dense = keys.count("first_k_dense_replace", default=0, least=0)
    if keys.count("moe_layer_freq", default=1) != 1:
        raise keys.refuse(
            "moe_layer_freq", "only 1 is supported: experts in every layer after the dense ones"
        )
    return replace(
        model,
        kv_heads=model.heads,
        value_dim=keys.count("v_head_dim"),
        rope_dim=rope,
        q_rank=keys.count("q_lora_rank", default=0),
        kv_rank=keys.count("kv_lora_rank"),
        experts=keys.count("n_routed_experts"),
        active_experts=keys.count("num_experts_per_tok"),
        expert_ffn=expert_ffn,
        shared_ffn=keys.count("n_shared_experts", default=0, least=0) * expert_ffn,
        dense_layers=min(dense, model.layers),
        router_bias=family == "deepseek_v3",
    )


FAMILIES: dict[str, Callable[[Keys, str], Model]] = {
    "llama": _llama,
    "mistral": _plain,
    "phi3": _plain,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "opt": _opt,
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
}


def model_from_config(config: object, where: str = "", name: str = "") -> Model:
    """Return the shapes that a Hugging Face config.json tells.

    Raises UserError, with file and key, for a ``model_type`` that is not known, for missing keys
    (all of them in one message), for values that are no sensible numbers, and for numbers that
    contradict each other.

    ``config`` is the parsed JSON, ``where`` the file or place that errors name, ``name`` what to
    call the model.
    """
    if not isinstance(config, Mapping):
        raise UserError(f"expected a mapping of a model's config, not {shown(config)}", where)
    keys = Keys(config, where)
    family = config.get("model_type")
    if not isinstance(family, str):
        raise keys.refuse(
            "model_type",
            "the model's config must name its model_type",
            f"known: {', '.join(FAMILIES)}",
        )
    if family not in FAMILIES:
        raise unknown_name("model_type", family, FAMILIES).at(
            f"{where}: model_type" if where else "model_type"
        )
    model = FAMILIES[family](keys, family)
    keys.done()
    _agree(model, keys)
    return replace(model, name=name or where or family)


def _agree(model: Model, keys: Keys) -> None:
    """Raise UserError if numbers contradict each other."""
    if model.heads % model.kv_heads:
        raise keys.refuse(
            "num_key_value_heads", f"{model.kv_heads} does not divide {model.heads} attention heads"
        )
    if model.active_experts > model.experts:
        what = f"{model.active_experts} experts a token, but there are only {model.experts}"
        raise keys.refuse("num_experts_per_tok", what)


def load_model(name: str, world: World, base_dir: str | Path = "") -> Model:
    """Return a model of the catalog, or of a config.json whose path (with a slash or ``.json``) is
    given.

    ``base_dir`` is what relative paths are relative to: the cluster file's folder. Raises
    UserError.

    ``name`` is an entry of the catalog in ``world``, or a path.
    """
    if "/" in name or name.endswith(".json"):
        return _from_file(Path(base_dir) / name)
    facts = world.catalog
    facts.require("model", name)
    # Nested values stand in the catalog as JSON text; none of them is a shape.
    config = {
        fact.attribute: fact.value
        for fact in facts.facts.values()
        if (fact.kind, fact.id) == ("model", name)
    }
    for attribute in config:
        world.text("model", name, attribute)
    return model_from_config(config, f"catalog: model {name}", name)


def _from_file(path: Path) -> Model:
    text = read_text(path, "model's config")
    try:
        config = json.loads(text)
    except RecursionError:
        raise UserError("the model's config is nested too deep", str(path)) from None
    except ValueError as error:
        reason = str(error).splitlines()[0][:120]
        raise UserError(f"the model's config is not JSON: {reason}", str(path)) from None
    named = config.get("_name_or_path") if isinstance(config, dict) else None
    short = (
        named if isinstance(named, str) and 0 < len(named) <= 100 and named.isprintable() else ""
    )
    return model_from_config(
        config, str(path), short or (path.parent.name if path.name == "config.json" else path.stem)
    )


__all__ = [
    "FAMILIES",
    "Model",
    "active_parameters",
    "forward_FLOPs_per_token",
    "load_model",
    "model_from_config",
    "parameters",
]
