// SPDX-License-Identifier: MIT OR Apache-2.0
#include "introspect/profile_file.h"

#include "heap/heap.h"
#include "introspect/descriptors.h"
#include "os/io.h"
#include "os/mapped_files.h"
#include "os/metadata.h"
#include "profile/profiler.h"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <sys/procfs.h>

namespace terrace::introspect {
namespace {

using profile::profiler, profile::records_per_chunk, profile::Sample;

#if defined(__aarch64__)
constexpr std::uint16_t machine = EM_AARCH64;
#else
constexpr std::uint16_t machine = EM_X86_64;
#endif
constexpr std::uint32_t mark_of_profile = 0x5450524f;  // tools/terrace/debug/core.py knows it
constexpr char core_name[8] = "CORE", our_name[8] = "TERRACE";

std::uint64_t address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

// A piece of memory; of the last bytes the file has nothing.
struct Part {
  std::uint64_t address, bytes, kept;
  std::uint32_t flags;
};
Part whole_of(const void* p, std::uint64_t bytes) noexcept {
  return {.address = address_of(p), .bytes = bytes, .kept = bytes, .flags = PF_R};
}

class ProfileWriter {
 public:
  ProfileWriter(int fd, ProfileRoom& room) noexcept : fd_(fd), room_(room), used_(profiler.table().used()) {}
  int write() noexcept;

 private:
  void find_files() noexcept;
  void put(const void* data, std::size_t bytes) noexcept;
  void put_memory(std::uint64_t address, std::size_t bytes) noexcept;
  void put_zeros(std::size_t bytes) noexcept;
  void flush() noexcept;

  Part file(std::size_t i) const noexcept;
  std::uint32_t records_of(std::uint32_t chunk) const noexcept {
    return min_of(records_per_chunk, used_ - chunk * records_per_chunk);
  }
  std::uint32_t chunks() const noexcept { return (used_ + records_per_chunk - 1) / records_per_chunk; }
  template <class Each>
  void each_part(Each each) noexcept;
  std::size_t size_of_notes() const noexcept;
  void put_header(std::uint64_t parts) noexcept;
  void put_note(const char (&name)[8], std::uint32_t type, std::size_t bytes) noexcept;
  void put_notes() noexcept;
  void put_copies() noexcept;
  void put_records() noexcept;

  int fd_;
  ProfileRoom& room_;
  std::uint32_t used_;
  std::uint32_t with_copies_ = 0;  // chunks
  int error_ = 0;
};

void ProfileWriter::flush() noexcept {
  std::string_view text(room_.buffer, room_.buffered);
  if (error_ == 0) error_ = os::write_from(fd_, text);
  room_.buffered = 0;
}

void ProfileWriter::put(const void* data, std::size_t bytes) noexcept {
  if (bytes > sizeof room_.buffer - room_.buffered) flush();
  if (bytes > sizeof room_.buffer) {
    put_memory(address_of(data), bytes);
  } else {
    std::memcpy(room_.buffer + room_.buffered, data, bytes);
    room_.buffered += bytes;
  }
}

void ProfileWriter::put_zeros(std::size_t bytes) noexcept {
  while (bytes != 0 && error_ == 0) {
    if (room_.buffered == sizeof room_.buffer) flush();
    const std::size_t n = min_of(bytes, sizeof room_.buffer - room_.buffered);
    std::memset(room_.buffer + room_.buffered, 0, n);
    room_.buffered += n;
    bytes -= n;
  }
}

// By the kernel, which refuses what can not be read (a file that was cut short since it was mapped): zeros in its place.
void ProfileWriter::put_memory(std::uint64_t address, std::size_t bytes) noexcept {
  flush();
  std::string_view text(reinterpret_cast<const char*>(address), bytes);
  if (error_ == 0) error_ = os::write_from(fd_, text);
  if (error_ != EFAULT) return;
  error_ = 0;
  put_zeros(text.size());
}

void ProfileWriter::find_files() noexcept {
  room_.file_count = room_.name_bytes = room_.buffered = 0;
  os::MappedFiles all(room_.line);
  for (os::MappedFile each; room_.file_count < ProfileRoom::most_files && all.next(each);) {
    if (each.path.size() >= sizeof room_.names - room_.name_bytes) break;
    char* const name = room_.names + room_.name_bytes;
    std::memcpy(name, each.path.data(), each.path.size());
    name[each.path.size()] = '\0';
    room_.name_bytes += each.path.size() + 1;
    room_.files[room_.file_count] = {.start = each.start, .end = each.end, .offset = each.offset};
    room_.flags[room_.file_count++] = (each.readable ? PF_R : 0U) | (each.writable ? PF_W : 0U) | (each.executable ? PF_X : 0U);
  }
}

// The first page has the build id, and tells whether the file is still the same.
Part ProfileWriter::file(std::size_t i) const noexcept {
  const ProfileRoom::Range& r = room_.files[i];
  const bool has_beginning = r.offset == 0 && (room_.flags[i] & PF_R) != 0;
  return {.address = r.start, .bytes = r.end - r.start, .kept = has_beginning ? os::smallest_page : 0, .flags = room_.flags[i]};
}

template <class Each>
void ProfileWriter::each_part(Each each) noexcept {
  for (std::size_t i = 0; i < room_.file_count; ++i) each(file(i));
  each(whole_of(&terrace_debug_descriptor, sizeof terrace_debug_descriptor));
  each(whole_of(&heap::heap, sizeof heap::heap));
  each(whole_of(&profiler, sizeof profiler));
  for (std::uint32_t i = 0; i < with_copies_; ++i)
    each(whole_of(profiler.table().copies(i), sizeof(os::StackCopy) * records_of(i)));
  for (std::uint32_t i = 0; i < chunks(); ++i) each(whole_of(profiler.table().chunk(i), sizeof(Sample) * records_of(i)));
}

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 3) / 4 * 4; }

std::size_t ProfileWriter::size_of_notes() const noexcept {
  const std::size_t one = sizeof(Elf64_Nhdr) + sizeof core_name;
  return 3 * one + sizeof profile::records_per_chunk + sizeof(prpsinfo_t) + 16 + sizeof(ProfileRoom::Range) * room_.file_count +
         padded(room_.name_bytes);
}

void ProfileWriter::put_header(std::uint64_t parts) noexcept {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_type = ET_CORE;
  head.e_machine = machine;
  head.e_version = EV_CURRENT;
  head.e_phoff = head.e_ehsize = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = static_cast<std::uint16_t>(parts + 1);
  put(&head, sizeof head);
  std::uint64_t at = sizeof head + (parts + 1) * sizeof(Elf64_Phdr);
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = at;
  segment.p_filesz = size_of_notes();
  segment.p_align = 4;
  put(&segment, sizeof segment);
  at += segment.p_filesz;
  each_part([&](const Part& part) noexcept {
    segment = {.p_type = PT_LOAD,
               .p_flags = part.flags,
               .p_offset = at,
               .p_vaddr = part.address,
               .p_paddr = 0,
               .p_filesz = part.kept,
               .p_memsz = part.bytes,
               .p_align = 1};
    put(&segment, sizeof segment);
    at += part.kept;
  });
}

void ProfileWriter::put_note(const char (&name)[8], std::uint32_t type, std::size_t bytes) noexcept {
  const Elf64_Nhdr head{.n_namesz = sizeof name, .n_descsz = static_cast<std::uint32_t>(bytes), .n_type = type};
  put(&head, sizeof head);
  put(name, sizeof name);
}

void ProfileWriter::put_notes() noexcept {
  put_note(our_name, mark_of_profile, sizeof records_per_chunk);
  put(&records_per_chunk, sizeof records_per_chunk);
  prpsinfo_t process{};  // its number alone, which is in the name of its map of code made at run time
  process.pr_pid = os::process_id();
  put_note(core_name, NT_PRPSINFO, sizeof process);
  put(&process, sizeof process);
  const std::uint64_t numbers[2] = {room_.file_count, 1};  // and the unit of offsets
  put_note(core_name, NT_FILE, sizeof numbers + sizeof(ProfileRoom::Range) * room_.file_count + room_.name_bytes);
  put(numbers, sizeof numbers);
  for (std::size_t i = 0; i < room_.file_count; ++i) put(&room_.files[i], sizeof room_.files[i]);
  put(room_.names, room_.name_bytes);
  put_zeros(padded(room_.name_bytes) - room_.name_bytes);
}

void ProfileWriter::put_copies() noexcept {
  constexpr std::uint32_t none = 1;  // no whole record has it
  for (std::uint32_t n = 0; n < with_copies_ * records_per_chunk && n < used_; ++n) {
    std::uint32_t& version = room_.versions[n];
    if (profiler.table().at(n).has_copy != 0 && profiler.table().read_copy(n, room_.copy, version)) {
      put(&room_.copy, sizeof room_.copy);
    } else {
      version = none;
      put_zeros(sizeof room_.copy);
    }
  }
}

void ProfileWriter::put_records() noexcept {
  for (std::uint32_t n = 0; n < used_; ++n) {
    Sample& s = room_.sample;
    if (!profiler.table().read(n, s)) {
      put_zeros(sizeof s);
      continue;
    }
    if (s.version != room_.versions[n]) s.has_copy = 0;
    put(&s, sizeof s);
  }
}

int ProfileWriter::write() noexcept {
  find_files();
  if (room_.file_count == 0) return ENOENT;
  if (profiler.table().chunk(0) == nullptr) used_ = 0;
  while (with_copies_ < chunks() && profiler.table().copies(with_copies_) != nullptr) ++with_copies_;
  std::uint64_t parts = 0;
  each_part([&](const Part&) noexcept { ++parts; });
  put_header(parts);
  put_notes();
  for (std::size_t i = 0; i < room_.file_count; ++i) put_memory(room_.files[i].start, file(i).kept);
  put_memory(address_of(&terrace_debug_descriptor), sizeof terrace_debug_descriptor);
  put_memory(address_of(&heap::heap), sizeof heap::heap);
  put_memory(address_of(&profiler), sizeof profiler);
  put_copies();
  put_records();
  flush();
  return error_;
}

}  // namespace

int write_profile(int fd, ProfileRoom& room) noexcept { return ProfileWriter(fd, room).write(); }

int write_profile(int fd) noexcept {
  const os::Scratch<ProfileRoom> room;
  return room.get() != nullptr ? write_profile(fd, *room.get()) : ENOMEM;
}

}  // namespace terrace::introspect
