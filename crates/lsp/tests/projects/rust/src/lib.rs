//! Shapes with an area.

pub mod circle;
pub mod report;

/// Anything with an area.
pub trait Shape {
    /// Returns the area in square metres.
    fn area(&self) -> f64;
}

/// A rectangle.
pub struct Rectangle {
    pub width: f64,
    pub height: f64,
}

impl Shape for Rectangle {
    fn area(&self) -> f64 {
        /* 𝒜é */ self.width * self.height
    }
}

pub fn doubled(shape: &dyn Shape) -> f64 {
    shape.area() * 2.0
}
