//! No path given to any operation reads, writes or removes anything outside its root.
#![no_main]

#[path = "../../crates/fsroot/tests/suite/random_paths.rs"]
mod random_paths;

use libfuzzer_sys::fuzz_target;
use random_paths::RandomWorld;

thread_local! {
    static WORLD: RandomWorld = RandomWorld::new();
}

fuzz_target!(|bytes: &[u8]| WORLD.with(|world| world.run(bytes)));
