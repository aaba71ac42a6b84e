"""Items made ahead by a thread, for one consumer, in the order of their source."""

from collections.abc import Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread, current_thread
from typing import Any, Generic, TypeVar
from weakref import finalize

from ...base import system

T = TypeVar("T")


class Ahead(Iterator[T]):
    """The items of an iterator, of which a thread makes up to ``n`` before they are asked for.

    An error of the source is raised where its item would have come, with its own traceback. The thread begins with
    the first item asked for. It ends with the last item, with an error, with `close`, when the object is dropped,
    as by a ``break``, or when the interpreter exits; the item in progress is finished before.
    """

    def __init__(self, items: Iterator[T], n: int) -> None:
        self._line = _Line(items, n)
        # A daemon, because the interpreter waits for others before it runs finalizers, which are what ends this one.
        self._thread = Thread(target=self._line.run, name="dgrr-prefetch", daemon=True)
        self.close = finalize(self, _end, self._line, self._thread)
        """End the thread; there are no more items."""

    def __next__(self) -> T:
        if self._thread.ident is None and self.close.alive:
            system.start_thread(self._thread)
        if not self.close.alive:
            raise StopIteration
        kind, made = self._line.take()
        if kind is not ITEM:
            self.close()
            try:
                raise StopIteration if kind is END else made
            finally:
                del made  # an error and the frame that raised it would hold each other
        item: T = made
        return item


ITEM, ERROR, END = "item", "error", "end"


class _Line(Generic[T]):
    """What the thread and its consumer share: a queue with so many places."""

    def __init__(self, items: Iterator[T], n: int) -> None:
        self._items, self._places = items, Semaphore(n)
        self._made: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._stopped = False

    def run(self) -> None:
        """The body of the thread: an item for each place that is free."""
        try:
            while self._places.acquire() and not self._stopped:
                self._made.put((ITEM, next(self._items)))
        except StopIteration:
            self._made.put((END, None))
        except BaseException as error:
            self._made.put((ERROR, error))
        finally:
            del self._items  # ends a generator here, in the thread that ran it

    def take(self) -> tuple[str, Any]:
        """The next item, once it is made; its place is free."""
        made = self._made.get()
        self._places.release()
        return made

    def stop(self) -> None:
        """Make no more."""
        self._stopped = True
        self._places.release()


def _end(line: _Line[Any], thread: Thread) -> None:
    line.stop()
    if thread.ident is not None and thread is not current_thread():
        thread.join()
