"""A transformer as the shapes of its matrices. One idea: parameters, FLOPs and communication all
follow from shapes.

Published parameter counts are reproduced to the digit (tests), which is the proof that no matrix is
forgotten.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """The shapes of a decoder-only transformer. Counts are numbers of elements; zero means "has
    none"."""

    name: str
    family: str  # model_type of its config.json
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int  # of a query or key
    ffn: int  # inner width of a dense feed-forward block
    vocab: int
    gated: bool = True  # three matrices (SwiGLU, GeGLU) instead of two
    tied: bool = False  # the output projection is the embedding
    value_dim: int = 0  # of a value; 0: head_dim
    experts: int = 0  # routed experts of a layer
    active_experts: int = 0  # of them, chosen for a token
    expert_ffn: int = 0  # inner width of one routed expert
    shared_ffn: int = 0  # inner width of all shared experts of a layer together
    shared_gate: bool = False  # a vector weighs the shared experts
    router_bias: bool = False  # a bias an expert balances the load
    dense_layers: int = 0  # layers without experts in a model with experts
    positions: int = 0  # learned position embeddings
    qkv_bias: bool = False
    output_bias: bool = False
    ffn_bias: bool = False
    norm_bias: bool = False  # LayerNorm with bias instead of RMSNorm
    norms: int = 2  # a layer
    qk_norm: bool = False  # a norm on each head's query and key
    q_rank: int = 0  # multi-head latent attention: rank of the compressed query
    kv_rank: int = 0  # rank of the compressed key and value; 0: ordinary attention
    rope_dim: int = 0  # part of head_dim that carries the position, shared by all heads

    @property
    def values(self) -> int:
        """Width of a value."""
        return self.value_dim or self.head_dim

    @property
    def moe_layers(self) -> int:
        """Layers with routed experts."""
        return self.layers - self.dense_layers if self.experts else 0


@dataclass(frozen=True, slots=True)
class Matrix:
    """One weight matrix: ``inputs`` x ``outputs``, and how tensor parallelism cuts it (column, row,
    kv or whole).

    ``kv`` is a column cut by heads of keys and values, of which each GPU holds at least one.
    """

    name: str
    inputs: int
    outputs: int
    split: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Parameters by place. ``*_matrix`` are elements of matrices, ``*_vector`` of norms and
    biases."""

    attention_matrix: int
    attention_vector: int
    dense_matrix: int  # feed-forward of a dense layer
    dense_vector: int
    expert_matrix: int  # one routed expert
    moe_matrix: (
        int  # what a layer with experts has besides its routed experts: router, shared experts
    )
    moe_vector: int
    embedding: int
    positions: int
    output: int  # 0 if tied
    final_vector: int

    def dense_layer(self) -> int:
        """Parameters of a layer without experts."""
        return self.attention_matrix + self.attention_vector + self.dense_matrix + self.dense_vector


def attention_matrices(model: Model) -> tuple[Matrix, ...]:
    """Return the projections of an attention block.

    ``model`` gives the widths; sides are elements.
    """
    h, queries, values = model.hidden, model.heads * model.head_dim, model.heads * model.values
    output = Matrix("attention output", values, h, "row")
    if model.kv_rank:
        nope = model.head_dim - model.rope_dim
        query: tuple[Matrix, ...]
        if model.q_rank:
            query = (
                Matrix("query down", h, model.q_rank, "whole"),
                Matrix("query up", model.q_rank, queries, "column"),
            )
        else:
            query = (Matrix("query", h, queries, "column"),)
        down = Matrix("key-value down", h, model.kv_rank + model.rope_dim, "whole")
        up = Matrix("key-value up", model.kv_rank, model.heads * (nope + model.values), "column")
        return (*query, down, up, output)
    width = model.kv_heads * (model.head_dim + model.values)
    return (Matrix("query", h, queries, "column"), Matrix("key-value", h, width, "kv"), output)


def ffn_matrices(model: Model, width: int) -> tuple[Matrix, ...]:
    """Return the matrices of a feed-forward block of an inner width: up (and gate, fused with it),
    and down.

    ``model`` gives the outer width, ``width`` is the inner one, in elements; none for 0.
    """
    if not width:
        return ()
    up = 2 * width if model.gated else width
    return (
        Matrix("feed-forward up", model.hidden, up, "column"),
        Matrix("feed-forward down", width, model.hidden, "row"),
    )


def _elements(matrices: tuple[Matrix, ...]) -> int:
    return sum(m.inputs * m.outputs for m in matrices)


@functools.lru_cache(maxsize=512)
def counts(model: Model) -> Counts:
    """Count the parameters of each part of a model.

    ``model`` is the whole model; results are numbers of elements.
    """
    h, norm = model.hidden, model.hidden * (2 if model.norm_bias else 1)
    queries, keys = model.heads * model.head_dim, model.kv_heads * (model.head_dim + model.values)
    vector = model.norms * norm + (2 * model.head_dim if model.qk_norm else 0)
    vector += (queries + keys if model.qkv_bias else 0) + (h if model.output_bias else 0)
    vector += (
        model.q_rank + model.kv_rank
    )  # the norms between the two halves of a compressed projection
    inner = model.ffn * (2 if model.gated else 1)
    return Counts(
        attention_matrix=_elements(attention_matrices(model)),
        attention_vector=vector,
        dense_matrix=_elements(ffn_matrices(model, model.ffn)),
        dense_vector=inner + h if model.ffn_bias else 0,
        expert_matrix=_elements(ffn_matrices(model, model.expert_ffn)),
        moe_matrix=h * model.experts + _elements(ffn_matrices(model, model.shared_ffn)),
        moe_vector=(h if model.shared_gate else 0) + (model.experts if model.router_bias else 0),
        embedding=model.vocab * h,
        positions=model.positions * h,
        output=0 if model.tied else model.vocab * h,
        final_vector=norm,
    )


def parameters(model: Model) -> int:
    """Return the number of parameters, as published counts count them (tied matrices once).

    ``model`` is the whole model.
    """
    c = counts(model)
    dense = model.layers - model.moe_layers
    attention = c.attention_matrix + c.attention_vector
    expert_layer = c.moe_matrix + c.moe_vector + model.experts * c.expert_matrix
    layers = (
        model.layers * attention
        + dense * (c.dense_matrix + c.dense_vector)
        + model.moe_layers * expert_layer
    )
    return layers + c.embedding + c.positions + c.output + c.final_vector


def active_parameters(model: Model) -> int:
    """Return the parameters that one token meets: all but the experts that are not chosen for
    it.

    ``model`` is the whole model.
    """
    idle = model.moe_layers * (model.experts - model.active_experts) * counts(model).expert_matrix
    return parameters(model) - idle


def matrix_parameters(model: Model) -> int:
    """Return the elements of the matrices that one token is multiplied with, the output projection
    included.

    ``model`` is the whole model.
    """
    c = counts(model)
    dense = model.layers - model.moe_layers
    experts = c.moe_matrix + model.active_experts * c.expert_matrix
    layers = model.layers * c.attention_matrix + dense * c.dense_matrix + model.moe_layers * experts
    return layers + model.vocab * model.hidden


@functools.lru_cache(maxsize=512)
def forward_FLOPs_per_token(model: Model, sequence: int) -> float:
    """Return the FLOPs of one token's forward pass, a multiply-add as two.

    Two a matrix element, and for attention 2 s (d_key + d_value) a head and layer, halved because a
    token sees only those before it: 2 s h where heads x d = h (Narayanan et al. 2021 count the full
    square, 4 s h).

    ``model`` gives the matrices, ``sequence`` is tokens.
    """
    attention = model.layers * sequence * model.heads * (model.head_dim + model.values)
    return 2.0 * matrix_parameters(model) + attention


def training_FLOPs_per_token(model: Model, sequence: int, recompute: str = "none") -> float:
    """Return the FLOPs of training on one token: forward, twice that backward, and once more if all
    is recomputed.

    ``model`` gives the matrices, ``sequence`` is tokens, ``recompute`` as in the recipe.
    """
    passes = 4.0 if recompute == "full" else 3.0
    return passes * forward_FLOPs_per_token(model, sequence)
