"""Attention, sequences and the reductions of losses."""

from typing import assert_type

import numpy as np
from given import Batch, Given, Hid, Img, In

from dgrr.tape import AnyVar, Var, f32, nn, ops


def attention_under_any_mask(g: Given) -> None:
    mask: AnyVar = g.t.const(np.ones((6, 1, 5), bool))
    found = ops.scaled_dot_product_attention(g.x3, g.x3, g.x3, mask, is_causal=True, window=2, softcap=3.0)
    assert_type(found, Var[f32, Img, Batch, In])


def rotary_keeps_the_shape(g: Given) -> None:
    assert_type(ops.rotary(g.x3), Var[f32, Img, Batch, In])


def losses_by_reduction(g: Given) -> None:
    assert_type(ops.mse_loss(g.x, g.x, reduction="sum"), Var[f32])
    assert_type(ops.mse_loss(g.x, g.x, reduction="none"), Var[f32, Batch, In])
    assert_type(ops.huber_loss(g.x, g.x, reduction="none"), Var[f32, Batch, In])
    assert_type(ops.l1_loss(g.x, g.x), Var[f32])
    assert_type(ops.cross_entropy(g.y, g.labels, reduction="none"), Var[f32, Batch])
    assert_type(ops.kl_div(g.x, g.x, reduction="batchmean"), Var[f32])


def distances_drop_the_last_axis(g: Given) -> None:
    assert_type(ops.pairwise_distance(g.x, g.x), Var[f32, Batch])
    assert_type(ops.cosine_similarity(g.x3, g.x3), Var[f32, Img, Batch])
    assert_type(ops.triplet_margin_loss(g.x, g.x, g.x, reduction="none"), Var[f32, Batch])


def layers_with_several_inputs(g: Given) -> None:
    block = nn.TransformerBlock(4, 2, 8, num_kv_heads=1, rotary=nn.Rotary())
    out = block(g.params(block), g.x3, key_mask=g.t.const(np.ones((6, 5), bool)))
    assert_type(out, AnyVar)
    pair = nn.Bilinear(4, 4, 3)
    assert_type(pair(g.params(pair), g.x, other=g.x), AnyVar)


def cells_give_their_states(g: Given) -> None:
    lstm, gru = nn.LSTMCell(4, 3), nn.GRUCell(4, 3)
    assert_type(lstm(g.params(lstm), g.x), tuple[AnyVar, AnyVar])
    assert_type(gru(g.params(gru), g.x, state=g.h), AnyVar)


def identity_keeps_the_shape(g: Given) -> None:
    assert_type(nn.Identity()({}, g.h), Var[f32, Batch, Hid])
