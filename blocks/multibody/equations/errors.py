"""What a method says when it cannot go on."""

from ....errors import BiellaError


class FormulationError(BiellaError):
    """A method cannot compute accelerations here, such as with redundant constraints."""
