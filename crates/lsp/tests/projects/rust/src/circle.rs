use crate::{Shape, doubled};

pub struct Circle {
    pub radius: f64,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        3.0 * self.radius * self.radius
    }
}

pub fn twice(circle: &Circle) -> f64 {
    doubled(circle)
}
