"""A transformer whose attention is written out, as users of PyTorch type it, without annotations."""

import numpy as np

from dgrr.runtime import AdamW, Dataset, Trainer
from dgrr.runtime.optim import Cosine
from dgrr.tape import nn, ops

TOKENS, LENGTH, WIDTH, HEADS = 11, 8, 16, 2
rng = np.random.default_rng(0)
CAUSAL = np.tril(np.ones((LENGTH, LENGTH), bool))


class Attention(nn.Layer):
    def __init__(self):
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def __call__(self, p, x, ctx=None):
        b, n, c = x.shape
        q, k, v = ops.split(self.part("qkv", p, x, ctx), 3, axis=-1)
        q, k, v = (y.reshape(b, n, HEADS, c // HEADS).permute(0, 2, 1, 3) for y in (q, k, v))
        scores = q @ k.swapaxes(-2, -1) / np.sqrt(c // HEADS).astype(np.float32)
        weights = ops.softmax(ops.where(CAUSAL, scores, -1e9), -1)
        return self.part("out", p, (weights @ v).permute(0, 2, 1, 3).reshape(b, n, c), ctx)


class Block(nn.Layer):
    def __init__(self):
        self.attention = Attention()
        self.norms = [nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)]
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def __call__(self, p, x, ctx=None):
        x = x + self.part("attention", p, self.part("norms.0", p, x, ctx), ctx)
        return x + self.part("mlp", p, self.part("norms.1", p, x, ctx), ctx)


class Model(nn.Layer):
    def __init__(self, depth=2):
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.places = nn.Parameter((LENGTH, WIDTH), nn.init.normal(0.02))
        self.blocks = [Block() for _ in range(depth)]
        self.head = nn.Linear(WIDTH, TOKENS)

    def __call__(self, p, x, ctx=None):
        x = self.part("tokens", p, x, ctx) + p["places"]
        for i in range(len(self.blocks)):
            x = self.part(f"blocks.{i}", p, x, ctx)
        return self.part("head", p, x, ctx)


model = Model()


def loss_fn(p, batch):
    text, following = batch
    logits = model(p, text)
    correct = ops.cast(logits.argmax(-1) == following, np.float32)
    return ops.cross_entropy(logits, following), {"accuracy": correct.mean()}


def main():
    text = rng.integers(0, TOKENS, (32, LENGTH + 1))
    data = Dataset(text[:, :-1], text[:, 1:])
    train, test = data.split(0.75, 0.25, seed=0)
    trainer = Trainer(loss_fn, model.init(seed=0), AdamW(Cosine(1e-3, steps=10)), clip_norm=1.0)
    result = trainer.fit(train.batches(8, seed=0), epochs=2, validation=test, progress=False)
    print(result.losses.mean(), result.history.last_epoch())
    logits = trainer.predict(text[:, :-1], model=model, batch=8)
    best = logits.argmax(-1)
    print((best == text[:, 1:]).mean(), logits.shape)


if __name__ == "__main__":
    main()
