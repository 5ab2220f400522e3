// SPDX-License-Identifier: MIT OR Apache-2.0
// The heap profiler's samples as a file that `terrace profile FILE` reads: an ELF core file that has nothing in it but what
// the tool needs. So it is read as a core file is, and whoever writes it interprets nothing.
//
//   notes      the mapped files (NT_FILE), and one that says that this is a profile
//   segments   each mapped file, of which only the first page is kept; the descriptor, the heap and the profiler; copies of
//              stacks, then records of samples
//
// Others sample meanwhile. A copy is written with its record's version in mind, and a record that has another one later is
// written without its copy. A record that is being written is left out.
//
// System calls only: no allocation, no lock, nothing that a signal or a fork may find half done.
#pragma once

#include "os/frames.h"
#include "profile/table.h"

namespace terrace::introspect {

/// What the writer works in: 2 MiB, of which it touches little.
struct ProfileRoom {
  static constexpr std::size_t most_files = 8192;
  struct Range {
    std::uint64_t start, end, offset;
  };
  Range files[most_files];
  std::uint32_t flags[most_files];  // of program headers
  std::size_t file_count, name_bytes, buffered;
  std::uint32_t versions[profile::records_per_chunk * profile::most_chunks];
  profile::Sample sample;
  os::StackCopy copy;
  char line[4608];  // of the list of mappings: a path, and numbers before it
  char buffer[8192];
  char names[512 << 10];  // of files: what does not fit is left out
};

/// Returns 0, or the error of writing; ENOENT: there is no list of mappings.
int write_profile(int fd, ProfileRoom& room) noexcept;
/// With room of its own; ENOMEM: there is none.
int write_profile(int fd) noexcept;

}  // namespace terrace::introspect
