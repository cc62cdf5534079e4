<?php

namespace Shop;

require_once 'prices.php';

echo withTax(5) + withTax(6);
