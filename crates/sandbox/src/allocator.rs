//! How the allocator deals with memory.

/// Parts of the heap that threads share. Each keeps what was freed in it, so that more of them make a
/// server with many short-lived threads grow for long; fewer would make its threads wait.
const ARENAS: i32 = 2;

/// Bytes that a part of the heap keeps when they are free. What is given back comes again page by page,
/// which takes longer than most work on a file of a megabyte.
const KEPT: i32 = 4 << 20;

/// Lets all threads share a few parts of the heap. For a server, before it has threads.
pub fn limit_malloc_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: Each call takes two numbers and changes a setting of the allocator under its own lock. A
    // value that it does not like changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}
