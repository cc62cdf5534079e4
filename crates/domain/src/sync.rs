//! Locks that outlive a panic: the one policy for poisoned locks.
//!
//! Shared state stands behind [`std::sync::Mutex`] or [`std::sync::RwLock`], never held across an await. The
//! standard library marks a lock as poisoned when a thread panics while it holds the guard. These functions
//! take such a lock as if nothing had happened: the value behind it is consistent after every statement, and
//! the panic was reported where it happened. Unwrapping the poison instead would turn one failed call into a
//! server in which every later call fails.
//!
//! A value that a panic could leave half changed must therefore not be guarded this way: change a copy and
//! store it in one statement.
//!
//! ```
//! use carrel_domain::sync;
//!
//! let count = std::sync::Mutex::new(1);
//! *sync::lock(&count) += 1;
//! assert_eq!(*sync::lock(&count), 2);
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Blocks until the mutex is free and takes it, poisoned or not.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks until no writer holds the lock and shares it, poisoned or not.
pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks until the lock is free and takes it alone, poisoned or not.
pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panic_holding<G>(guard: impl FnOnce() -> G + Send) {
        std::thread::scope(|scope| {
            let panicking = scope.spawn(|| {
                let _guard = guard();
                panic!("a bug, for this test");
            });
            panicking.join().expect_err("the thread panics");
        });
    }

    #[test]
    fn a_lock_survives_the_panic_of_its_holder() {
        let mutex = Mutex::new(1);
        panic_holding(|| lock(&mutex));
        assert!(mutex.is_poisoned());
        *lock(&mutex) += 1;
        assert_eq!(*lock(&mutex), 2);

        let shared = RwLock::new(1);
        panic_holding(|| write(&shared));
        assert!(shared.is_poisoned());
        *write(&shared) += 1;
        assert_eq!(*read(&shared), 2);
    }
}
