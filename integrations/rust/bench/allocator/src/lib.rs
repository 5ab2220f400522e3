// SPDX-License-Identifier: MIT OR Apache-2.0
//! `use allocator as _;` in a program: its global allocator is the one that the feature names.

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "snmalloc")]
#[global_allocator]
static ALLOCATOR: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;

#[cfg(feature = "terrace")]
#[global_allocator]
static ALLOCATOR: terrace::Terrace = terrace::Terrace;
