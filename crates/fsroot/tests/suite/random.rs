use crate::random_paths::RandomWorld;

#[test]
fn random_operations_on_random_paths_stay_inside() {
    let tree_fixture = RandomWorld::new();
    let mut random = fastrand::Rng::with_seed(42);
    for _ in 0..3000 {
        let length = random.usize(..=240);
        let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        tree_fixture.run(&bytes);
    }
}
