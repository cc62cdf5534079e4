"""Prices with tax."""

TAX = 19


def with_tax(price: int) -> int:
    """Returns a price with its tax."""
    return price + price * TAX // 100
