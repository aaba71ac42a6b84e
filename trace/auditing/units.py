"""What an audit draws and checks: units, the steps from one recorded state to the next."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a run: unit u has the steps from ``u * length`` on; the last may be shorter.

    A unit begins at a state of which the trace has digests and, the end of the run aside, ends at the next such. So
    `length` is the `state_every` of the trace, and where states are digested after every step, a unit is one step.

    >>> units = Units(steps=10, length=4)
    >>> len(units), units[0], units[2]
    (3, range(0, 4), range(8, 10))
    """

    steps: int
    length: int

    def __len__(self) -> int:
        return -(-self.steps // self.length)

    def __getitem__(self, unit: int) -> range:
        return range(unit * self.length, min((unit + 1) * self.length, self.steps))

    def fewest(self, steps: int) -> int:
        """The least number of units that can hold so many steps.

        >>> Units(steps=10, length=4).fewest(5)
        2
        """
        return -(-steps // self.length)
