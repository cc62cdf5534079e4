use crate::Rectangle;
use crate::doubled;

pub fn report(rectangle: &Rectangle) -> String {
    let /* 𝒜 */ twice = doubled(rectangle);
    format!("twice the area is {}", twice)
}
