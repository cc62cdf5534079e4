#ifndef PRICES_H
#define PRICES_H

/* Returns a price with its tax. */
int with_tax(int price);

#endif
