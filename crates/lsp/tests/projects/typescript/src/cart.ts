import { Priced, withTax } from "./prices.js";

export class Cart implements Priced {
  prices: number[] = [];

  price(): number {
    /* 𝒜é */ return this.prices.reduce((sum, price) => sum + withTax(price), 0);
  }
}
