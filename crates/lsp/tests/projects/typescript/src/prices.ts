export interface Priced {
  price(): number;
}

/** Returns a price with its tax. */
export function withTax(price: number): number {
  return price * 1.19;
}
