// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program on the allocator: every kind of layout, threads that come and go, fork.
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;
use std::sync::mpsc::sync_channel;
use std::thread;
use terrace::Terrace;

#[global_allocator]
static ALLOCATOR: Terrace = Terrace;

fn layouts() -> impl Iterator<Item = Layout> {
    let sizes = [0, 1, 7, 8, 9, 15, 16, 17, 24, 63, 64, 100, 1000, 4095, 4096, 4097, 40_000, 262_144, 300_000, 3_000_000];
    (0..=21).flat_map(move |shift| sizes.map(|size| Layout::from_size_align(size, 1 << shift).unwrap()))
}

fn fill(block: *mut u8, length: usize, seed: usize) {
    (0..length).for_each(|i| unsafe { block.add(i).write((seed + i) as u8) });
}

fn is_filled(block: *const u8, length: usize, seed: usize) -> bool {
    (0..length).all(|i| unsafe { block.add(i).read() } == (seed + i) as u8)
}

#[test]
fn blocks_of_every_layout_are_aligned_and_apart() {
    let blocks: Vec<_> = layouts().map(|layout| (layout, unsafe { Terrace.alloc(layout) })).collect();
    for (seed, (layout, block)) in blocks.iter().enumerate() {
        assert!(!block.is_null() && *block as usize % layout.align() == 0, "{layout:?}");
        fill(*block, layout.size().min(5000), seed);
    }
    for (seed, (layout, block)) in blocks.iter().enumerate() {
        assert!(is_filled(*block, layout.size().min(5000), seed), "{layout:?}");
        unsafe { Terrace.dealloc(*block, *layout) };
    }
}

#[test]
fn zeroed_blocks_are_zero_where_dirty_ones_were() {
    for layout in layouts() {
        unsafe {
            let dirty = Terrace.alloc(layout);
            dirty.write_bytes(0xa5, layout.size());
            Terrace.dealloc(dirty, layout);
            let block = Terrace.alloc_zeroed(layout);
            assert_eq!(block as usize % layout.align(), 0, "{layout:?}");
            assert!((0..layout.size()).all(|i| block.add(i).read() == 0), "{layout:?}");
            Terrace.dealloc(block, layout);
        }
    }
}

#[test]
fn realloc_keeps_contents_and_alignment() {
    for shift in 0..=16 {
        for size in [1, 8, 100, 1000, 5000, 300_000] {
            for new_size in [0, 1, 7, 90, 1010, 4096, 70_000, 2_000_000] {
                let layout = Layout::from_size_align(size, 1 << shift).unwrap();
                unsafe {
                    let old = Terrace.alloc(layout);
                    fill(old, size, shift);
                    let new = Terrace.realloc(old, layout, new_size);
                    assert!(!new.is_null() && new as usize % layout.align() == 0, "{layout:?} to {new_size}");
                    assert!(is_filled(new, size.min(new_size), shift), "{layout:?} to {new_size}");
                    Terrace.dealloc(new, Layout::from_size_align(new_size, layout.align()).unwrap());
                }
            }
        }
    }
}

#[test]
fn what_can_not_be_had_is_null() {
    let layout = Layout::from_size_align(isize::MAX as usize - 4096, 1).unwrap();
    let aligned = Layout::from_size_align(isize::MAX as usize - 4096, 4096).unwrap();
    let small = Layout::from_size_align(100, 64).unwrap();
    unsafe {
        assert!(Terrace.alloc(layout).is_null() && Terrace.alloc_zeroed(layout).is_null());
        assert!(Terrace.alloc(aligned).is_null() && Terrace.alloc_zeroed(aligned).is_null());
        let block = Terrace.alloc(small);
        fill(block, 100, 3);
        assert!(Terrace.realloc(block, small, aligned.size()).is_null());
        assert!(is_filled(block, 100, 3), "the block is still there");
        Terrace.dealloc(block, small);
    }
}

#[test]
fn threads_hand_blocks_over_and_end() {
    let (to, from) = sync_channel::<Vec<String>>(4);
    let reader = thread::spawn(move || from.iter().map(|words| words.iter().map(String::len).sum::<usize>()).sum::<usize>());
    let writers: Vec<_> = (0..4)
        .map(|w| {
            let to = to.clone();
            thread::spawn(move || {
                for round in 0..50 {
                    // A thread that ends with what another one made in its thread-local data.
                    thread_local!(static KEPT: std::cell::RefCell<HashMap<usize, String>> = HashMap::new().into());
                    let words: Vec<_> = (0..100).map(|n| format!("{w}-{round}-{}", "x".repeat(n))).collect();
                    let kept = words.clone();
                    thread::spawn(move || KEPT.with_borrow_mut(|map| map.extend(kept.into_iter().enumerate()))).join().unwrap();
                    to.send(words).unwrap();
                }
            })
        })
        .collect();
    drop(to);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let expected: usize = (0..4).flat_map(|w| (0..50).map(move |round| format!("{w}-{round}-").len() * 100 + 4950)).sum();
    assert_eq!(reader.join().unwrap(), expected);
}

#[test]
fn a_child_of_fork_allocates_beside_threads_that_do() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    drop(std::hint::black_box((0..50).map(|n| vec![0u8; n * 100]).collect::<Vec<_>>()));
                }
            });
        }
        for _ in 0..20 {
            let child = unsafe { libc::fork() };
            if child == 0 {
                let words: Vec<_> = (0..1000).map(|n| n.to_string()).collect();
                let all: usize = words.iter().map(String::len).sum();
                unsafe { libc::_exit(i32::from(all != 2890)) };
            }
            let mut status = -1;
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn the_program_is_served_by_it() {
    let before = terrace::statistics().unwrap();
    let block = std::hint::black_box(vec![1u8; 50_000_000]);
    let after = terrace::statistics().unwrap();
    assert!(after.live_large >= 50_000_000 && after.large.allocations > before.large.allocations);
    assert!(after.core.allocations >= after.core.frees && after.slots > 0 && after.mapped >= after.live_large);
    drop(block);
    terrace::trim();
}

#[test]
fn malloc_of_libc_is_terrace_only_with_override() {
    let before = terrace::statistics().unwrap().live_large;
    let size = 400_000_000;
    let block = unsafe { libc::malloc(size) };
    let grown = terrace::statistics().unwrap().live_large >= before.max(size as u64);
    unsafe { libc::free(block) };
    assert_eq!(grown, cfg!(feature = "override"));
}

/// How a child ends that runs `misuse`, and what it says.
#[cfg(any(feature = "check", feature = "hardened"))]
fn end_of(misuse: fn()) -> (i32, String) {
    use std::io::Read;
    let (mut said, out) = std::io::pipe().unwrap();
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&out), 2) };
        misuse();
        unsafe { libc::_exit(0) };
    }
    drop(out);
    let (mut status, mut text) = (0, String::new());
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    said.read_to_string(&mut text).unwrap();
    (libc::WTERMSIG(status), text)
}

#[cfg(any(feature = "check", feature = "hardened"))]
#[test]
fn a_double_free_after_another_free_ends_the_process() {
    let (signal, said) = end_of(|| unsafe {
        let layout = Layout::from_size_align(100, 8).unwrap();
        let (a, b) = (Terrace.alloc(layout), Terrace.alloc(layout));
        Terrace.dealloc(a, layout);
        Terrace.dealloc(b, layout);
        Terrace.dealloc(a, layout);
    });
    assert_eq!(signal, libc::SIGABRT);
    assert!(said.contains("double free"), "{said}");
}

#[cfg(feature = "check")]
#[test]
fn a_wrong_layout_and_a_write_beyond_the_end_end_the_process() {
    let (signal, said) = end_of(|| unsafe {
        let block = Terrace.alloc(Layout::from_size_align(100, 8).unwrap());
        Terrace.dealloc(block, Layout::from_size_align(50, 8).unwrap());
    });
    assert!(signal == libc::SIGABRT && said.contains("has 100 bytes, not 50"), "{said}");
    let (signal, said) = end_of(|| unsafe {
        let layout = Layout::from_size_align(100, 8).unwrap();
        let block = Terrace.alloc(layout);
        block.add(100).write(1);
        Terrace.dealloc(block, layout);
    });
    assert!(signal == libc::SIGABRT && said.contains("written beyond its end"), "{said}");
}
