from shop.cart import Cart
from shop.prices import with_tax


def main() -> None:
    cart = Cart()
    cart.prices.append(100)
    print("𝒜é", cart.total(), with_tax(5))
