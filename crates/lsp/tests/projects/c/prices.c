#include "prices.h"

int with_tax(int price) {
  return price + price * 19 / 100;
}
