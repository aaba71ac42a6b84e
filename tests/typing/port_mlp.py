"""A perceptron of two layers as users of PyTorch type it, without annotations: checkers find nothing in it."""

import numpy as np

from dgrr.runtime import SGD, Adam, Dataset, Trainer, capture_function, evaluate
from dgrr.tape import Tape, nn, ops

rng = np.random.default_rng(0)
images = rng.standard_normal((64, 8)).astype(np.float32)
labels = rng.integers(0, 3, 64)
weight = np.array([1, 2, 1], np.float32)


class Net(nn.Layer):
    def __init__(self, hidden=16):
        self.first = nn.Linear(8, hidden)
        self.second = nn.Linear(hidden, 3)

    def __call__(self, p, x, ctx=None):
        x = ops.relu(self.part("first", p, x, ctx))
        return self.part("second", p, x, ctx)


net = Net()


def loss_fn(p, batch):
    x, y = batch
    logits = net(p, x)
    hit = (logits.argmax(-1) == y).astype(np.float32).mean()
    return ops.cross_entropy(logits, y, weight=weight, label_smoothing=0.1), {"hit": hit}


def by_hand():
    """The loop of a first tutorial, on one batch that is not the tape's."""
    w1, b1 = rng.standard_normal((16, 8)).astype(np.float32), np.zeros(16, np.float32)
    w2 = rng.standard_normal((3, 16)).astype(np.float32)
    losses = []
    for _ in range(3):
        tape = Tape()
        p1, p2, q = tape.param(w1, name="w1"), tape.param(w2, name="w2"), tape.param(b1, name="b1")
        h = ops.maximum(ops.linear(images, p1, q), 0.0)
        loss = ops.cross_entropy(h @ p2.T, labels)
        grads = tape.backward_dense(loss)
        w1 = w1 - np.float32(0.1) * grads["w1"].numpy()
        w2 -= 0.1 * grads[p2].numpy()
        losses.append(loss.item())
    return losses


def main():
    train = Dataset(images, labels)
    trainer = Trainer(loss_fn, net.init(0), Adam(lr=1e-2))
    result = trainer.fit(train.batches(16, seed=0), epochs=2, progress=False)
    print(result.losses[-1], trainer.evaluate(train, metric="hit"))
    logits = trainer.predict(images, model=net, batch=16)
    print((logits.argmax(-1) == labels).mean(), logits.shape)

    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    params = model.init(0)
    predict = capture_function(lambda x: model(params, x), images)
    print(predict(images).argmax(-1)[:3], model(params, images).argmax(-1)[:3])
    print(evaluate(lambda p, batch: ops.mse_loss(model(p, batch), 0.0), params, images).loss)
    Trainer(lambda p, x: ops.mse_loss(model(p, x), 0), params, {"*.bias": SGD(0.1), "*": Adam(1e-3)}).fit(
        [images] * 2, progress=False
    )
    print(by_hand())


if __name__ == "__main__":
    main()
