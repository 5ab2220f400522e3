// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface of [Terrace](https://docs.rs/terrace), compiled from its bundled sources. Programs use the crate `terrace`.
//!
//! `DEP_TERRACE_INCLUDE` has the headers, for build scripts of crates that depend on this one. They say what each function does.
#![no_std]
#![allow(missing_docs, non_camel_case_types)]

use core::ffi::{c_char, c_int, c_uint, c_void};

// terrace/malloc.h
extern "C" {
    pub fn terrace_malloc(size: usize) -> *mut c_void;
    pub fn terrace_free(p: *mut c_void);
    pub fn terrace_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn terrace_realloc(p: *mut c_void, size: usize) -> *mut c_void;
    pub fn terrace_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    pub fn terrace_malloc_usable_size(p: *const c_void) -> usize;
    pub fn terrace_malloc_trim(pad: usize) -> c_int;
    pub fn terrace_free_sized(p: *mut c_void, size: usize);
    pub fn terrace_free_aligned_sized(p: *mut c_void, alignment: usize, size: usize);
}

// terrace/stats.h, terrace/version.h
extern "C" {
    pub fn terrace_stats_json(buf: *mut c_char, size: usize) -> usize;
    pub fn terrace_stats_text(buf: *mut c_char, size: usize) -> usize;
    pub fn terrace_rung() -> *const c_char;
    pub fn terrace_rung_reason() -> *const c_char;
    pub fn terrace_version() -> *const c_char;
}

/// All numbers of a snapshot. Levels are core, processor, global, large; columns are allocations, frees, refills, spills,
/// foreign, aborts, held, purged.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    pub level: [[u64; 8]; 4],
    pub live: u64,
    pub live_large: u64,
    pub held: u64,
    pub dirty: u64,
    pub purged: u64,
    pub committed: u64,
    pub metadata: u64,
    pub budget: u64,
    pub slots: u64,
}

extern "C" {
    /// False: there is no memory for a snapshot.
    pub fn terrace_rust_statistics(out: *mut Statistics) -> bool;
}

// terrace/cs.h
pub const TERRACE_CS_OK: c_int = 0;
pub const TERRACE_CS_INVALID: c_int = 1;
pub const TERRACE_CS_MISMATCH: c_int = 2;
pub const TERRACE_CS_EMPTY: c_int = 3;
pub const TERRACE_CS_FULL: c_int = 4;
pub const TERRACE_CS_OCCUPIED: c_int = 5;
pub const TERRACE_CS_CORRUPT: c_int = 6;
pub const TERRACE_CS_NO_SLOT: c_int = 7;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct terrace_cs_words {
    pub words: *mut c_void,
    pub stride: usize,
}

extern "C" {
    pub fn terrace_cs_slots() -> c_uint;
    pub fn terrace_cs_begin() -> c_int;
    pub fn terrace_cs_reopen(slot: c_int) -> c_int;
    pub fn terrace_cs_valid() -> c_int;
    pub fn terrace_cs_end();
    pub fn terrace_cs_invalidate();
    pub fn terrace_cs_store32(address: *mut c_void, value: i32) -> c_int;
    pub fn terrace_cs_store64(address: *mut c_void, value: i64) -> c_int;
    pub fn terrace_cs_cas32(value: i32, expected: i32, address: *mut c_void) -> c_int;
    pub fn terrace_cs_cas64(value: i64, expected: i64, address: *mut c_void) -> c_int;
    pub fn terrace_cs_pop(words: terrace_cs_words, block: *mut *mut c_void) -> c_int;
    pub fn terrace_cs_push(words: terrace_cs_words, cap: c_uint, block: *mut c_void) -> c_int;
    pub fn terrace_cs_take_all(words: terrace_cs_words, chain: *mut u64) -> c_int;
    pub fn terrace_cs_put_all(words: terrace_cs_words, chain: u64) -> c_int;
    pub fn terrace_cs_bump(words: terrace_cs_words, bytes: usize, start: *mut u64) -> c_int;
}

// umem.h, by names of its own: a libumem in the same process keeps its names.
pub const UMEM_DEFAULT: c_int = 0;
pub const UMEM_NOFAIL: c_int = 0x100;

#[repr(C)]
#[derive(Debug)]
pub struct umem_cache_t {
    _private: [u8; 0],
}
pub type umem_constructor_t = unsafe extern "C" fn(object: *mut c_void, private_data: *mut c_void, flags: c_int) -> c_int;
pub type umem_destructor_t = unsafe extern "C" fn(object: *mut c_void, private_data: *mut c_void);
pub type umem_reclaim_t = unsafe extern "C" fn(private_data: *mut c_void);

extern "C" {
    /// `source` is NULL, or an arena of sys/vmem.h.
    #[link_name = "terrace_umem_cache_create"]
    pub fn umem_cache_create(
        name: *const c_char,
        bufsize: usize,
        align: usize,
        constructor: Option<umem_constructor_t>,
        destructor: Option<umem_destructor_t>,
        reclaim: Option<umem_reclaim_t>,
        private_data: *mut c_void,
        source: *mut c_void,
        cflags: c_int,
    ) -> *mut umem_cache_t;
    #[link_name = "terrace_umem_cache_destroy"]
    pub fn umem_cache_destroy(cache: *mut umem_cache_t);
    #[link_name = "terrace_umem_cache_alloc"]
    pub fn umem_cache_alloc(cache: *mut umem_cache_t, flags: c_int) -> *mut c_void;
    #[link_name = "terrace_umem_cache_free"]
    pub fn umem_cache_free(cache: *mut umem_cache_t, object: *mut c_void);
    #[link_name = "terrace_umem_reap"]
    pub fn umem_reap();
}
