// SPDX-License-Identifier: MIT OR Apache-2.0
//! Terrace, a memory allocator for Linux whose buffers belong to CPU cores.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: terrace::Terrace = terrace::Terrace;
//!
//! let words: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
//! assert!(terrace::statistics().unwrap().core.allocations >= 1000);
//! # drop(words);
//! ```
//!
//! - [`Terrace`]: the global allocator.
//! - [`statistics()`], [`statistics_text()`], [`statistics_json()`]: what each level did and holds. [`trim()`] gives free memory back.
//! - [`Cache`]: an object cache, whose objects stay constructed while they are free.
//! - [`cs`]: data per core by critical sections, without locks and atomic instructions.
//!
//! Features: `override` makes `malloc`, `free` and their relatives Terrace's for C and C++ code in the process, too. `hardened` is
//! for programs that may be attacked through their heap, `check` finds misuse while debugging.
//!
//! A `cdylib` that is unloaded must be linked with `-z nodelete`. The child of `vfork`, or of a raw `clone` that shares memory,
//! must not allocate.

mod allocator;
mod cache;
pub mod cs;
mod statistics;

pub use allocator::{trim, Terrace};
pub use cache::{Cache, Object};
pub use statistics::{rung, statistics, statistics_json, statistics_text, version, Level, Statistics};
