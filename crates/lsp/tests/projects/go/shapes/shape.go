// Package shapes has shapes with an area.
package shapes

// Shape is anything with an area.
type Shape interface {
	Area() float64
}

// Doubled returns twice the area of a shape.
func Doubled(shape Shape) float64 {
	return shape.Area() * 2
}
