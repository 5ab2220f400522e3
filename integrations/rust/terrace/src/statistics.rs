// SPDX-License-Identifier: MIT OR Apache-2.0
use core::ffi::{c_char, CStr};
use terrace_sys as sys;

/// What one level did since the process started, and what it holds. Blocks go down from a level to the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Level {
    /// Blocks that the level handed down: to the program at the core level, to the level below elsewhere.
    pub allocations: u64,
    /// Blocks that the level took back from below.
    pub frees: u64,
    /// Times the level was asked by the one below: magazines taken (core, processor), slabs made (global), spans taken (large).
    pub refills: u64,
    /// Times the level below gave back: magazines (core, processor), slabs released (global), spans given (large).
    pub spills: u64,
    /// Blocks that went into or came out of a buffer of another processor or home.
    pub foreign: u64,
    /// Restartable sequences that the kernel interrupted and that began again.
    pub aborts: u64,
    /// Free bytes that the level holds.
    pub held: u64,
    /// Bytes given back to the system.
    pub purged: u64,
}

/// What the allocator did and holds. Exact while nobody allocates; otherwise each number was true at some recent moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Buffers of the cores (or threads, where the kernel has no restartable sequences).
    pub core: Level,
    /// Depots of the last-level caches.
    pub processor: Level,
    /// Slabs.
    pub global: Level,
    /// Large blocks, which have spans of their own.
    pub large: Level,
    /// Bytes in blocks of the program, in their classes' sizes.
    pub live: u64,
    /// Of these, bytes in large blocks.
    pub live_large: u64,
    /// Bytes of address space in use: live blocks, what levels hold, free spans with pages.
    pub held: u64,
    /// Bytes of free spans that still have pages.
    pub dirty: u64,
    /// Bytes given back to the system so far.
    pub purged: u64,
    /// Bytes mapped for blocks.
    pub mapped: u64,
    /// Bytes of the allocator's own data.
    pub metadata: u64,
    /// Bound on the bytes that core and processor levels may hold.
    pub budget: u64,
    /// Buffers of the core level.
    pub slots: u64,
}

fn level(of: &[u64; 8]) -> Level {
    let [allocations, frees, refills, spills, foreign, aborts, held, purged] = *of;
    Level { allocations, frees, refills, spills, foreign, aborts, held, purged }
}

/// All statistics as numbers, or `None` without memory for a snapshot. It takes the locks of the depots one by one.
///
/// ```
/// use terrace::Terrace;
/// use std::alloc::{GlobalAlloc, Layout};
/// let layout = Layout::from_size_align(10_000_000, 8).unwrap();
/// let before = terrace::statistics().unwrap().live_large;
/// let block = unsafe { Terrace.alloc(layout) };
/// assert!(terrace::statistics().unwrap().live_large >= before + 10_000_000);
/// unsafe { Terrace.dealloc(block, layout) };
/// ```
pub fn statistics() -> Option<Statistics> {
    let mut s = sys::Statistics::default();
    // SAFETY: `s` is what the function fills.
    if !unsafe { sys::terrace_rust_statistics(&mut s) } {
        return None;
    }
    let [core, processor, global, large] = s.level.each_ref().map(level);
    Some(Statistics {
        core,
        processor,
        global,
        large,
        live: s.live,
        live_large: s.live_large,
        held: s.held,
        dirty: s.dirty,
        purged: s.purged,
        mapped: s.committed,
        metadata: s.metadata,
        budget: s.budget,
        slots: s.slots,
    })
}

fn text_of(write: unsafe extern "C" fn(*mut c_char, usize) -> usize) -> String {
    let mut text: Vec<u8> = Vec::with_capacity(128 * 1024);
    loop {
        // SAFETY: the function writes at most `capacity` bytes, the last of which is zero.
        let length = unsafe { write(text.as_mut_ptr().cast(), text.capacity()) };
        if length < text.capacity() {
            // SAFETY: so many have been written.
            unsafe { text.set_len(length) };
            return String::from_utf8_lossy(&text).into_owned();
        }
        text.reserve(length + 1);
    }
}

/// The statistics as a table for people, a line per level; empty without memory for a snapshot.
///
/// ```
/// assert!(terrace::statistics_text().starts_with("Terrace 0.1"));
/// ```
pub fn statistics_text() -> String {
    text_of(sys::terrace_stats_text)
}

/// The statistics as a JSON object, by size class, too; empty without memory for a snapshot.
///
/// ```
/// assert!(terrace::statistics_json().starts_with(r#"{"schema":1,"#));
/// ```
pub fn statistics_json() -> String {
    text_of(sys::terrace_stats_json)
}

fn static_text(text: *const c_char) -> &'static str {
    // SAFETY: static storage, never NULL (terrace/stats.h, terrace/version.h); ASCII.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default()
}

/// How a thread finds the buffers of its core: `mm_cid`, `cpu_id`, `getcpu` or `thread`.
///
/// ```
/// assert!(["mm_cid", "cpu_id", "getcpu", "thread"].contains(&terrace::rung()));
/// ```
#[must_use]
pub fn rung() -> &'static str {
    // SAFETY: no requirements.
    static_text(unsafe { sys::terrace_rung() })
}

/// The version of the allocator.
#[must_use]
pub fn version() -> &'static str {
    // SAFETY: no requirements.
    static_text(unsafe { sys::terrace_version() })
}
