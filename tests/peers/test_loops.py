"""Choices, loops and checkpoints beside JAX and PyTorch: ops that run functions, which no row can draw."""

import numpy as np
import pytest

from dgrr.tape import Tape, checkpoint, ops

RNG = np.random.default_rng(0)
W, X = RNG.standard_normal((4, 4)), RNG.standard_normal((3, 4))


def gradients(loss):
    """The loss, and gradients by w and x."""
    tape = Tape()
    w, x = tape.param(W), tape.param(X)
    value = loss(w, x)
    grads = tape.backward_scalar(value)
    return [value.numpy(), grads[w].numpy(), grads[x].numpy()]


def require_alike(jax, here, there):
    """The same loss and gradients of a function and of one of JAX."""
    with jax.enable_x64(True):
        value, grads = jax.jit(jax.value_and_grad(there, argnums=(0, 1)))(W, X)
        for mine, other in zip(gradients(here), (value, *grads), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("above", [-1e9, 1e9])
def test_jax_cond_has_the_same_gradients(above):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def here(w, x):
        return ops.cond(x.sum() > above, lambda x: ops.sin(x @ w).sum(), lambda x: (x * x).sum(), x)

    def there(w, x):
        return jax.lax.cond(x.sum() > above, lambda x: jnp.sin(x @ w).sum(), lambda x: (x * x).sum(), x)

    require_alike(jax, here, there)


def test_jax_while_loop_and_scan_of_checkpoints_agree():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def here(w, x):
        start = ops.stop_gradient(x.sum() * x.sum())
        n = ops.while_loop(lambda c: c[1] > 1.0, lambda c: (c[0] + 1, c[1] * 0.5), (np.array(0), start))[0]
        step = checkpoint(lambda h, r: (ops.tanh(h @ w + r), None))
        return (ops.scan(step, x[0], x)[0] * ops.cast(n + 1, "float64")).sum()

    def there(w, x):
        start = jax.lax.stop_gradient(x.sum() * x.sum())
        n = jax.lax.while_loop(lambda c: c[1] > 1.0, lambda c: (c[0] + 1, c[1] * 0.5), (0, start))[0]
        step = jax.checkpoint(lambda h, r: (jnp.tanh(h @ w + r), None))
        return (jax.lax.scan(step, x[0], x)[0] * (n + 1)).sum()

    require_alike(jax, here, there)


def test_torch_checkpoint_has_the_same_gradients():
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint as kept

    w, x = (torch.tensor(a, requires_grad=True) for a in (W, X))
    loss = kept(lambda w, x: torch.sin(torch.tanh(x @ w)) * x, w, x, use_reentrant=False).sum()
    loss.backward()
    made = gradients(lambda w, x: checkpoint(lambda w, x: ops.sin(ops.tanh(x @ w)) * x)(w, x).sum())
    for mine, other in zip(made, (loss.detach(), w.grad, x.grad), strict=True):
        np.testing.assert_allclose(mine, other.numpy(), rtol=1e-12, atol=1e-12)
