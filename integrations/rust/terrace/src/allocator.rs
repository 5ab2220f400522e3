// SPDX-License-Identifier: MIT OR Apache-2.0
use core::alloc::{GlobalAlloc, Layout};
use core::ptr;
use terrace_sys as sys;

/// The allocator, for `#[global_allocator]` or to be called directly.
///
/// ```
/// use std::alloc::{GlobalAlloc, Layout};
/// let layout = Layout::from_size_align(100, 4096).unwrap();
/// let block = unsafe { terrace::Terrace.alloc(layout) };
/// assert_eq!(block as usize % 4096, 0);
/// unsafe { terrace::Terrace.dealloc(block, layout) };
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Terrace;

/// Whether `terrace_malloc` aligns a block enough by itself: to 16.
const fn is_plain(layout: Layout) -> bool {
    layout.align() <= 16
}

// SAFETY: the functions of terrace/malloc.h are an allocator, aligned as asked for; none unwinds.
unsafe impl GlobalAlloc for Terrace {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout) {
            sys::terrace_malloc(layout.size()).cast()
        } else {
            sys::terrace_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout) {
            return sys::terrace_calloc(layout.size(), 1).cast();
        }
        let block = self.alloc(layout);
        if !block.is_null() {
            ptr::write_bytes(block, 0, layout.size());
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_plain(layout) {
            sys::terrace_free_sized(block.cast(), layout.size());
        } else {
            sys::terrace_free_aligned_sized(block.cast(), layout.align(), layout.size());
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Size 0 would free the block and return NULL, which here says that it is still there.
        if is_plain(layout) && new_size != 0 {
            return sys::terrace_realloc(block.cast(), new_size).cast();
        }
        let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
        if !new.is_null() {
            ptr::copy_nonoverlapping(block, new, layout.size().min(new_size));
            self.dealloc(block, layout);
        }
        new
    }
}

/// Empties the buffers of all levels and gives all free pages back to the system. Whether any went back.
///
/// It takes milliseconds and stops every core's buffers briefly.
pub fn trim() -> bool {
    // SAFETY: no requirements.
    unsafe { sys::terrace_malloc_trim(0) != 0 }
}
