"""Attention and losses of shapes that do not go together."""

from given import Given

from dgrr.tape import ops


def keys_of_other_features(g: Given) -> None:
    ops.scaled_dot_product_attention(g.x, g.h, g.h)  # E: misc | reportArgumentType
    # T: scaled_dot_product_attention: argument 'key': expected shape (Keys, 4), got (5, 3)


def distance_of_other_vectors(g: Given) -> None:
    ops.pairwise_distance(g.x, g.h)  # E: misc | reportArgumentType
    # T: pairwise_distance: argument 'b': expected shape (5, 4), got (5, 3)


def absolute_error_of_other_shapes(g: Given) -> None:
    ops.l1_loss(g.x, g.h)  # E: misc | reportArgumentType
    # T: l1_loss: argument 'b': expected shape (5, 4), got (5, 3)


def unreduced_loss_is_no_scalar(g: Given) -> None:
    g.t.backward_scalar(ops.mse_loss(g.x, g.x, reduction="none"))  # E: call-overload | reportArgumentType
    # T: backward_scalar: argument 'out': expected shape (), got (5, 4)
