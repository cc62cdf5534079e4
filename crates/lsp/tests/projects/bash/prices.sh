#!/bin/bash
# Prints a price with its tax.
with_tax() {
  echo $(($1 * 119 / 100))
}
