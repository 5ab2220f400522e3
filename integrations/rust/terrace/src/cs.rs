// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data per core, changed without locks and atomic instructions by critical sections (`terrace/cs.h`) on Linux' restartable
//! sequences. Where the kernel has none, a short lock per slot stands in.
//!
//! What is here is safe: whatever a closure does, memory stays sound. Transactions by hand, on data of any kind, are unsafe
//! functions of the crate `terrace-sys`.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicI64, Ordering};
use terrace_sys as sys;

/// Two cache lines, which are fetched together.
#[repr(C, align(128))]
struct Apart<T>(T);

/// The number of slots, cores as a rule; constant for the process.
#[must_use]
pub fn slots() -> usize {
    // SAFETY: no requirements.
    unsafe { sys::terrace_cs_slots() as usize }
}

/// A number per core, for counters and maxima that many threads change and few read.
///
/// ```
/// use terrace::cs::PerCore;
/// static HITS: std::sync::LazyLock<PerCore> = std::sync::LazyLock::new(|| PerCore::new(0));
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| HITS.add(1)));
///     }
/// });
/// assert_eq!(HITS.sum(), 4000);
/// ```
pub struct PerCore {
    cells: Box<[Apart<AtomicI64>]>, // one per slot, and one for whoever has none or is interrupted again and again
}

/// Attempts before the cell that all threads share.
const MOST_ATTEMPTS: u32 = 100;

impl PerCore {
    /// All cells are `initial`; it should be a value that changes no result, such as 0 for a sum.
    #[must_use]
    pub fn new(initial: i64) -> Self {
        Self { cells: (0..=slots()).map(|_| Apart(AtomicI64::new(initial))).collect() }
    }

    /// Replaces the value of one cell, this core's, by `change` of it. `change` may be called more than once, and only the last
    /// result counts.
    ///
    /// It should be short. If it allocates, an attempt always fails, and after 100 a cell that all threads share is changed by
    /// compare-and-swap. If it makes a system call, changes by other threads meanwhile may be lost.
    pub fn update(&self, mut change: impl FnMut(i64) -> i64) {
        for _ in 0..MOST_ATTEMPTS {
            // SAFETY: no requirements.
            let Ok(slot) = usize::try_from(unsafe { sys::terrace_cs_begin() }) else { break };
            let cell = &self.cells[slot].0;
            let value = change(cell.load(Ordering::Relaxed));
            // SAFETY: the cell is aligned, and is written to as an atomic would be.
            if unsafe { sys::terrace_cs_store64(cell.as_ptr().cast(), value) } == sys::TERRACE_CS_OK {
                return;
            }
        }
        let shared = &self.cells[self.cells.len() - 1].0;
        let mut old = shared.load(Ordering::Relaxed);
        while let Err(now) = shared.compare_exchange_weak(old, change(old), Ordering::Relaxed, Ordering::Relaxed) {
            old = now;
        }
    }

    /// Adds `n`, wrapping around.
    pub fn add(&self, n: i64) {
        self.update(|value| value.wrapping_add(n));
    }

    /// The values of all cells. Each was true at some moment of the call.
    pub fn values(&self) -> impl Iterator<Item = i64> + '_ {
        self.cells.iter().map(|cell| cell.0.load(Ordering::Relaxed))
    }

    /// The sum of all cells, wrapping around.
    pub fn sum(&self) -> i64 {
        self.values().fold(0, i64::wrapping_add)
    }
}

impl fmt::Debug for PerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values()).finish()
    }
}

/// A value that can lie on a [`Stack`], with the word that links it there.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Block<T> {
    below: u64,
    value: T,
}

impl<T> Block<T> {
    /// A block with `value`.
    pub fn new(value: T) -> Box<Self> {
        Box::new(Self { below: 0, value })
    }
}

impl<T> Deref for Block<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Block<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// A stack of boxes per core: a free list, for example. Push and pop are one restartable sequence each.
///
/// ```
/// use terrace::cs::{Block, Stack};
/// let free = Stack::new(16);
/// free.push(Block::new([0u8; 4096])).expect("room for 16 on this core");
/// let buffer = free.pop().unwrap_or_else(|| Block::new([0u8; 4096])); // empty, if the thread has moved to another core
/// assert_eq!(buffer.len(), 4096);
/// ```
pub struct Stack<T> {
    words: Box<[Apart<UnsafeCell<u64>>]>,
    most: u8,
    owns: PhantomData<Box<Block<T>>>,
}

// SAFETY: sequences change the words; boxes go from one thread to another.
unsafe impl<T: Send> Send for Stack<T> {}
unsafe impl<T: Send> Sync for Stack<T> {}

impl<T: Send> Stack<T> {
    /// Each core has at most `most` blocks, of 254.
    #[must_use]
    pub fn new(most: u8) -> Self {
        let words = (0..slots()).map(|_| Apart(UnsafeCell::new(0))).collect();
        Self { words, most: most.min(254), owns: PhantomData }
    }

    fn where_words_are(&self) -> sys::terrace_cs_words {
        let words = self.words.as_ptr().cast_mut().cast::<c_void>();
        sys::terrace_cs_words { words, stride: core::mem::size_of::<Apart<UnsafeCell<u64>>>() }
    }

    /// Puts a block on this core's stack; gives it back when that is full, or when the thread has no core (`terrace/cs.h`).
    pub fn push(&self, block: Box<Block<T>>) -> Result<(), Box<Block<T>>> {
        let block = Box::into_raw(block);
        // SAFETY: the block begins with the word that the function writes to, and is nobody else's.
        match unsafe { sys::terrace_cs_push(self.where_words_are(), self.most.into(), block.cast()) } {
            sys::TERRACE_CS_OK => Ok(()),
            // SAFETY: nothing was stored.
            _ => Err(unsafe { Box::from_raw(block) }),
        }
    }

    /// Takes the block that was pushed last on this core's stack; `None` if that is empty, whatever other cores have.
    #[must_use]
    pub fn pop(&self) -> Option<Box<Block<T>>> {
        let mut block = core::ptr::null_mut();
        // SAFETY: the words are chains of blocks of push().
        let result = unsafe { sys::terrace_cs_pop(self.where_words_are(), &mut block) };
        assert_ne!(result, sys::TERRACE_CS_CORRUPT, "a block of the stack was written to after it was pushed");
        // SAFETY: push() took it, and it is nobody else's now.
        (result == sys::TERRACE_CS_OK).then(|| unsafe { Box::from_raw(block.cast()) })
    }
}

impl<T> Drop for Stack<T> {
    fn drop(&mut self) {
        for word in &mut *self.words {
            let mut word = core::mem::take(word.0.get_mut());
            while word != 0 {
                // SAFETY: a word is the address of the first block and, in its last byte, their number; a block has the word from
                // before it.
                let block = unsafe { Box::from_raw((word >> 8) as *mut Block<T>) };
                word = block.below;
            }
        }
    }
}

impl<T> fmt::Debug for Stack<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("most", &self.most).finish_non_exhaustive()
    }
}
