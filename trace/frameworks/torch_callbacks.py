"""Callbacks that record what other projects train with PyTorch: transformers' ``Trainer`` and Lightning's."""

from typing import Any

from ...base.errors import DomainError
from ...base.packages import package
from .pytorch import record_torch
from .shared import TraceTarget


def transformers_callback(trace: TraceTarget, **options: Any) -> Any:
    """A callback of transformers' ``Trainer`` that records its training, as `record_torch` does.

    The loss of a step is the one that the model gives. Where gradients are accumulated it is the sum of those that the
    model gave. A training that ends with an error leaves an unfinished, readable trace.

    Shapes, dtypes: those of `record_torch`.

    Args:
        trace: as of `record_torch`.
        options: those of `record_torch`: ``record``, ``state_every``, ``master_weights``, ``seed``, ``level``.

    Returns:
        A ``transformers.TrainerCallback``, for one call of ``train()``; its ``run`` is what `record_torch` gives.

    Raises:
        ModuleNotFoundError: transformers is not installed.

    >>> callback = transformers_callback("run.dgrr", record="digest")  # doctest: +SKIP
    >>> Trainer(model, args, train_dataset=data, callbacks=[callback]).train()  # doctest: +SKIP
    """
    transformers = package("transformers_callback", "transformers")

    class TransformersCallback(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        """Begins with the training, and ends with it."""

        run: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            optimizer = given["optimizer"]
            own = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
            self.run = record_torch(given["model"], own, trace, **options).__enter__()

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            self.run.__exit__(None, None, None)

    return TransformersCallback()


def lightning_callback(trace: TraceTarget, **options: Any) -> Any:
    """A callback of Lightning's ``Trainer`` that records its training, as `record_torch` does.

    The loss of a step is the one that Lightning differentiates, of accumulated gradients the sum. A training that ends
    with an error leaves an unfinished, readable trace.

    Shapes, dtypes: those of `record_torch`.

    Args:
        trace: as of `record_torch`.
        options: those of `record_torch`: ``record``, ``state_every``, ``master_weights``, ``seed``, ``level``.

    Returns:
        A ``lightning.pytorch.Callback``, for one call of ``fit()``; its ``run`` is what `record_torch` gives.

    Raises:
        ModuleNotFoundError: lightning is not installed.
        DomainError: when the training begins: it has several optimizers, or none.

    >>> callback = lightning_callback("run.dgrr", record="digest")  # doctest: +SKIP
    >>> Trainer(max_epochs=1, callbacks=[callback]).fit(module, batches)  # doctest: +SKIP
    """
    lightning = package("lightning_callback", "lightning.pytorch")

    class LightningCallback(lightning.Callback):  # type: ignore[misc, name-defined]
        """Begins with the training, and ends with it."""

        run: Any = None
        batch: Any = None

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if len(trainer.optimizers) != 1:
                raise DomainError(
                    f"lightning_callback: expected a training with one optimizer, got {len(trainer.optimizers)}; "
                    "record each with record_torch in a loop of your own"
                )
            self.run = record_torch(pl_module, trainer.optimizers[0], trace, **options).__enter__()

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            self.batch = batch

        def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
            self.run.loss(loss, batch=self.batch)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self.run.__exit__(None, None, None)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            if self.run is not None:
                self.run.__exit__(type(exception), exception, exception.__traceback__)

    return LightningCallback()
