package shapes

// Rectangle is a shape.
type Rectangle struct{ Width, Height float64 }

// Area returns the area.
func (r Rectangle) Area() float64 { return r.Width * r.Height }

func quadrupled(r Rectangle) float64 {
	return Doubled(r) * 2
}
