#!/bin/bash
source ./prices.sh
with_tax 5
with_tax 6
