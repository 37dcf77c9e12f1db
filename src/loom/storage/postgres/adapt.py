"""Numbers as the other engine gives them: the sum of whole numbers is a whole number."""

from decimal import Decimal

from psycopg import Connection
from psycopg.adapt import Buffer
from psycopg.rows import TupleRow
from psycopg.types.numeric import NumericBinaryLoader, NumericLoader


class _PlainNumber(NumericLoader):
    def load(self, data: Buffer) -> int | float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A numeric as int where it is whole, else as float."""
        return _plain(super().load(data))


class _PlainBinaryNumber(NumericBinaryLoader):
    def load(self, data: Buffer) -> int | float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A numeric as int where it is whole, else as float."""
        return _plain(super().load(data))


def adapt(connection: Connection[TupleRow]) -> None:
    """Load numerics of this connection so."""
    connection.adapters.register_loader("numeric", _PlainNumber)
    connection.adapters.register_loader("numeric", _PlainBinaryNumber)


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
