#include "prices.h"

int total(const int *prices, int count);

int main(void) {
  int prices[] = {100, 200};
  return total(prices, 2) + with_tax(5);
}
