package main

import (
	"fmt"

	"example.org/shapes/shapes"
)

func main() {
	/* 𝒜é */ fmt.Println(shapes.Doubled(shapes.Rectangle{Width: 2, Height: 3}))
}
