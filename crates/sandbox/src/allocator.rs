//! Settings of the C library's allocator for a server that runs for weeks.

/// Arenas of the heap, shared by all threads. With one arena for each thread, memory that one thread
/// freed was not reused by another: 10,000 tool calls cost 0.7 MiB more each time. With two arenas the
/// heap stays flat (20.1 MiB after 10,000 calls and after 20,000), and threads rarely wait for a lock.
const ARENAS: i32 = 2;

/// Bytes that stay in the heap when they are freed. Memory that was given back to the kernel comes back
/// page by page, one fault each, which takes longer than most work on a file of a megabyte.
const KEPT: i32 = 4 << 20;

/// Limits the number of malloc arenas and keeps freed memory in them, for a server, before it has
/// threads. Has no effect with C libraries other than glibc.
pub fn limit_malloc_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: Each call takes two numbers and changes a setting of the allocator under its own lock. A
    // value that it does not accept changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}
