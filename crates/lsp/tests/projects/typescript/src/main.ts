import { Cart } from "./cart.js";
import { withTax } from "./prices.js";

const cart = new Cart();
cart.prices.push(100);
export const label = "𝒜é" + withTax(cart.price());
