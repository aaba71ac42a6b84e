"""What a trainer calls between its steps."""

from .result import Result
from .trainer import Trainer


class Callback:
    """Told of every step and epoch of a fit. Derive from it and write the methods that are needed.

    A method that returns True ends the fit in good order after the step in progress: the trace is sealed, the
    checkpoint saved, the result returned. An exception passes through `Trainer.fit`, as one of the model would.
    Callbacks may read everything and save checkpoints, but must not change parameters or state: a trace could
    not explain it. A callback's own state is not in checkpoints, and after a resume the calls that followed the
    last saved step come again.

    Evaluation after each epoch, and an end once the loss is small enough:

    >>> import numpy as np
    >>> from dgrr.runtime import SGD, Callback, Dataset, Trainer
    >>> class Evaluated(Callback):
    ...     def __init__(self, data):
    ...         self.data, self.losses = data, []
    ...     def on_epoch(self, trainer, epoch, loss):
    ...         self.losses.append(trainer.evaluate(self.data))
    ...         return self.losses[-1] < 0.1
    >>> halves = Dataset(np.full((4, 1), 0.5))
    >>> evaluated = Evaluated(halves)
    >>> def loss_fn(p, batch):
    ...     return ((batch[0] * p["w"]) ** 2).mean()
    >>> trainer = Trainer(loss_fn, {"w": np.ones(1)}, SGD(0.5), callbacks=[evaluated])
    >>> trainer.fit(halves.batches(4), epochs=10).steps, evaluated.losses
    (2, [0.140625, 0.0791015625])
    """

    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
        """Step number ``step``, from 0, is done and recorded; ``loss`` was taken before its update."""
        return None

    def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> bool | None:
        """Epoch number ``epoch``, from 0, has ended or was cut short; ``loss`` is that of its last step."""
        return None

    def on_end(self, trainer: Trainer, result: Result) -> None:
        """The fit has ended without an error; its trace is sealed."""
