// SPDX-License-Identifier: MIT OR Apache-2.0
//! Critical sections: nothing is lost, whatever the closures do.
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use terrace::cs::{Block, PerCore, Stack};

#[global_allocator]
static ALLOCATOR: terrace::Terrace = terrace::Terrace;

#[test]
fn no_addition_is_lost() {
    let counter = PerCore::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..100_000).for_each(|_| counter.add(1)));
        }
    });
    assert_eq!(counter.sum(), 800_000);
}

#[test]
fn a_change_that_allocates_still_counts_once() {
    let counter = PerCore::new(0);
    for _ in 0..100 {
        counter.update(|value| value + *std::hint::black_box(Box::new(1)));
    }
    assert_eq!(counter.sum(), 100);
}

#[test]
fn a_panic_leaves_the_cells_as_they_were() {
    let counter = PerCore::new(5);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| counter.update(|_| panic!("no"))));
    assert!(panic.is_err() && counter.values().all(|value| value == 5));
    counter.update(|value| value.max(9));
    assert_eq!(counter.values().max(), Some(9));
}

#[test]
fn each_pushed_block_is_popped_or_dropped_once() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Counted(#[allow(dead_code)] usize);
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
    let (stack, threads, each) = (Stack::new(50), 6, 20_000);
    let refused = AtomicUsize::new(0);
    thread::scope(|scope| {
        for t in 0..threads {
            let (stack, refused) = (&stack, &refused);
            scope.spawn(move || {
                for n in 0..each {
                    if stack.push(Block::new(Counted(t * each + n))).is_err() {
                        refused.fetch_add(1, Relaxed);
                    }
                    if n % 3 == 0 {
                        drop(stack.pop());
                    }
                }
            });
        }
    });
    assert!(refused.load(Relaxed) > 0, "a stack has an end");
    drop(stack);
    assert_eq!(DROPPED.load(Relaxed), threads * each);
}
