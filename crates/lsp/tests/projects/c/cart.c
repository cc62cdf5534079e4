#include "prices.h"

int total(const int *prices, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++)
    /* 𝒜é */ sum += with_tax(prices[i]);
  return sum;
}
