"""What a trainer calls between its steps."""

from collections.abc import Mapping

from ..callback_list import nothing
from ..result import Result
from ..trainer import Trainer


class Callback:
    """Called at the events of a fit. Derive from it and override the methods that you need.

    The moments, in their order: ``on_begin``; for every step ``on_step``, and ``on_validation`` where one is due;
    for every epoch ``on_validation``, where one is due, and ``on_epoch``; ``on_end``. Several callbacks are called in
    the order given. A plain function ``f(trainer, epoch, loss)`` is called as ``on_epoch``, and any object with one of
    the methods can be a callback.

    A method that returns True ends the fit cleanly after the step in progress: the trace is sealed, the checkpoint
    saved, the result returned. An exception passes through `Trainer.fit`, like one of the model. Callbacks may read
    everything and save checkpoints, but must not change parameters or state: a trace could not explain it.

    Checkpoints hold the state of a callback that has ``state_dict()``, which returns JSON values, and
    ``load_state_dict(state)``; a callback of the same class gets it back. After a resume, the calls after the last
    saved step happen again.

    End a fit once the validation loss is small enough:

    >>> import numpy as np
    >>> from dgrr.runtime import SGD, Callback, Dataset, Trainer
    >>> class SmallEnough(Callback):
    ...     def on_validation(self, trainer, step, figures):
    ...         print(f"step {step}: {figures['validation_loss']:.3f}")
    ...         return figures["validation_loss"] < 0.1
    >>> halves = Dataset(np.full((4, 1), 0.5))
    >>> def loss_fn(p, batch):
    ...     return ((batch[0] * p["w"]) ** 2).mean()
    >>> trainer = Trainer(loss_fn, {"w": np.ones(1)}, SGD(0.5), callbacks=[SmallEnough()])
    >>> trainer.fit(halves.batches(4), epochs=10, validation=halves).steps
    step 0: 0.141
    step 1: 0.079
    2
    """

    @nothing
    def on_begin(self, trainer: Trainer, steps: int) -> None:
        """A fit begins, of which ``steps`` steps were done before: 0, unless it goes on from a checkpoint."""

    @nothing
    def on_step(self, trainer: Trainer, step: int, loss: float) -> bool | None:
        """Step number ``step``, from 0, is done and recorded; ``loss`` was taken before its update."""
        return None

    @nothing
    def on_validation(self, trainer: Trainer, step: int, figures: Mapping[str, float]) -> bool | None:
        """After step number ``step`` the validation gave ``figures``: ``validation_loss``, and the metrics so named."""
        return None

    @nothing
    def on_epoch(self, trainer: Trainer, epoch: int, loss: float) -> bool | None:
        """Epoch number ``epoch``, from 0, has ended or was cut short; ``loss`` is that of its last step.

        ``trainer.history.last_epoch()`` has its means.
        """
        return None

    @nothing
    def on_end(self, trainer: Trainer, result: Result) -> None:
        """The fit has ended without an error; its trace is sealed."""
