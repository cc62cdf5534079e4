from shop.prices import with_tax


class Cart:
    def __init__(self) -> None:
        self.prices: list[int] = []

    def total(self) -> int:
        "𝒜é"; return sum(with_tax(price) for price in self.prices)
