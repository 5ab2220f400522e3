// SPDX-License-Identifier: MIT OR Apache-2.0
// The format: DWARF 5, section 6.4, and Linux Standard Base Core 5.0, chapter 10.6 (exception frames).
#include "os/frame_rules.h"

#include "base/bits.h"

#include <cstddef>
#include <cstring>

// glibc 2.35 and later.
struct dl_find_object;
extern "C" int _dl_find_object(void* pc, dl_find_object* result) __attribute__((weak));

namespace terrace::os {

#if defined(__x86_64__)
namespace {

constexpr unsigned register_fp = 6, register_sp = 7, register_return = 16;

// As <dlfcn.h> has it, which may be older than the C library.
struct Found {
  unsigned long long flags;
  void *begin, *end;
  void* link_map;
  void* eh_frame_header;
  unsigned long long reserved[7];
};

class Reader {
 public:
  Reader() = default;
  Reader(const std::uint8_t* at, const std::uint8_t* end) noexcept : at_(at), end_(end) {}
  template <class T>
  T take() noexcept {
    T value{};
    if (static_cast<std::size_t>(end_ - at_) < sizeof value) return fail<T>();
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  std::int64_t sleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = take<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }
  void skip(std::uint64_t bytes) noexcept {
    if (bytes > static_cast<std::uint64_t>(end_ - at_)) {
      fail<int>();
    } else {
      at_ += bytes;
    }
  }
  Reader part(std::uint64_t bytes) noexcept {
    const std::uint8_t* const from = at_;
    skip(bytes);
    return {from, at_};
  }
  bool more() const noexcept { return at_ < end_; }
  bool sound() const noexcept { return sound_; }
  const std::uint8_t* at() const noexcept { return at_; }

 private:
  template <class T>
  T fail() noexcept {
    at_ = end_;
    sound_ = false;
    return {};
  }
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool sound_ = true;
};

// What a common information entry says of its functions.
struct Common {
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint8_t pointers = 0;  // how they are written
  bool has_augmentation = false, of_signal = false, sound = false;
  Reader program;
};

constexpr std::uint8_t pc_relative_4 = 0x1b, table_relative_4 = 0x3b;
constexpr FrameRule outermost{.cfa = FrameRule::Cfa::none};

// Of a length and an offset or number behind it; its end.
Reader entry_at(const std::uint8_t* at) noexcept {
  std::uint32_t length = 0;
  std::memcpy(&length, at, sizeof length);
  return length == 0xffffffff ? Reader{at, at} : Reader{at + sizeof length, at + sizeof length + length};
}

Common read_common(const std::uint8_t* at) noexcept {
  Common c;
  Reader r = entry_at(at);
  if (r.take<std::uint32_t>() != 0) return c;
  const auto version = r.take<std::uint8_t>();
  char augmentation[8] = {};
  for (char& letter : augmentation) {
    letter = static_cast<char>(r.take<std::uint8_t>());
    if (letter == 0) break;
  }
  c.code_factor = r.uleb();
  c.data_factor = r.sleb();
  const std::uint64_t return_register = version == 1 ? r.take<std::uint8_t>() : r.uleb();
  if ((version != 1 && version != 3) || return_register != register_return || augmentation[0] != 'z') return c;
  c.has_augmentation = true;
  Reader data = r.part(r.uleb());
  for (const char* letter = augmentation + 1; *letter != 0; ++letter) {
    if (*letter == 'R') c.pointers = data.take<std::uint8_t>();
    if (*letter == 'L') data.take<std::uint8_t>();
    if (*letter == 'S') c.of_signal = true;
    if (*letter == 'P') {
      const std::uint8_t how = data.take<std::uint8_t>() & 0x0fU;
      data.skip(how == 0x0b || how == 0x03 ? 4 : 8);
    }
  }
  c.program = r;
  c.sound = r.sound() && data.sound() && c.pointers == pc_relative_4;
  return c;
}

// Where a call frame program has come to.
class Row {
 public:
  Row(const Common& common, std::uintptr_t begin, std::uintptr_t pc) noexcept : common_(common), location_(begin), pc_(pc) {}

  // Up to the code that was asked for.
  void run(Reader program, bool initial) noexcept {
    while (program.more() && !past_ && known_) step(program);
    if (!program.sound()) known_ = false;
    if (initial) initial_ = now_;
  }
  FrameRule rule() const noexcept { return known_ ? now_ : FrameRule{}; }

 private:
  void step(Reader& r) noexcept {
    const auto op = r.take<std::uint8_t>();
    const std::uint8_t low = op & 0x3fU;
    switch (op >> 6) {
      case 1: return advance(low);
      case 2: return saved(low, static_cast<std::int64_t>(r.uleb()));
      case 3: return restored(low);
      default: return step_extended(low, r);
    }
  }
  void step_extended(std::uint8_t op, Reader& r) noexcept {
    switch (op) {
      case 0x00: return;
      case 0x02: return advance(r.take<std::uint8_t>());
      case 0x03: return advance(r.take<std::uint16_t>());
      case 0x04: return advance(r.take<std::uint32_t>());
      case 0x05: {
        const std::uint64_t reg = r.uleb();
        return saved(reg, static_cast<std::int64_t>(r.uleb()));
      }
      case 0x06: return restored(r.uleb());
      case 0x07: return undefined(r.uleb());
      case 0x08: return restored(r.uleb());  // same value
      case 0x0a: return remember();
      case 0x0b: return recall();
      case 0x0c: {
        const std::uint64_t reg = r.uleb();
        return cfa_is(reg, static_cast<std::int64_t>(r.uleb()));
      }
      case 0x0d: return cfa_is(r.uleb(), now_.cfa_offset);
      case 0x0e: return offset_is(static_cast<std::int64_t>(r.uleb()));
      case 0x0f: return cfa_by(r.part(r.uleb()));
      case 0x10: {
        const std::uint64_t reg = r.uleb();
        return saved_by(reg, r.part(r.uleb()));
      }
      case 0x11: {
        const std::uint64_t reg = r.uleb();
        return saved(reg, r.sleb());
      }
      case 0x2e: r.uleb(); return;  // bytes of arguments: of no matter here
      default: known_ = false;
    }
  }

  void advance(std::uint64_t delta) noexcept {
    location_ += delta * common_.code_factor;
    past_ = location_ > pc_;
  }
  void saved(std::uint64_t reg, std::int64_t factored) noexcept {
    const std::int64_t offset = factored * common_.data_factor;
    if (reg == register_return && offset != -8) known_ = false;
    if (reg == register_fp) fp_is(FrameRule::Fp::at_cfa, offset);
  }
  void restored(std::uint64_t reg) noexcept {
    if (reg != register_fp) return;
    now_.fp = initial_.fp;
    now_.fp_offset = initial_.fp_offset;
  }
  void undefined(std::uint64_t reg) noexcept {
    if (reg == register_return) now_.cfa = FrameRule::Cfa::none;
  }
  void cfa_is(std::uint64_t reg, std::int64_t offset) noexcept {
    if (now_.cfa == FrameRule::Cfa::none) return;
    now_.cfa = reg == register_sp   ? FrameRule::Cfa::from_sp
               : reg == register_fp ? FrameRule::Cfa::from_fp
                                    : FrameRule::Cfa::unknown;
    offset_is(offset);
  }
  void offset_is(std::int64_t offset) noexcept {
    now_.cfa_offset = static_cast<std::int32_t>(offset);
    if (now_.cfa_offset != offset) known_ = false;
  }
  void fp_is(FrameRule::Fp where, std::int64_t offset) noexcept {
    now_.fp = where;
    now_.fp_offset = static_cast<std::int16_t>(offset);
    if (now_.fp_offset != offset) known_ = false;
  }
  // "What lies at rbp + n": functions that align their stack.
  void cfa_by(Reader expression) noexcept {
    const bool from_fp = expression.take<std::uint8_t>() == 0x70 + register_fp;
    offset_is(expression.sleb());
    now_.cfa = from_fp && expression.take<std::uint8_t>() == 0x06 && !expression.more() ? FrameRule::Cfa::at_fp
                                                                                        : FrameRule::Cfa::unknown;
  }
  void saved_by(std::uint64_t reg, Reader expression) noexcept {
    if (reg == register_return) known_ = false;
    if (reg != register_fp) return;
    if (expression.take<std::uint8_t>() != 0x70 + register_fp) known_ = false;
    fp_is(FrameRule::Fp::at_fp, expression.sleb());
    if (expression.more()) known_ = false;
  }
  void remember() noexcept {
    if (depth_ == sizeof remembered_ / sizeof remembered_[0]) {
      known_ = false;
    } else {
      remembered_[depth_++] = now_;
    }
  }
  void recall() noexcept {
    if (depth_ == 0) {
      known_ = false;
    } else {
      now_ = remembered_[--depth_];
    }
  }

  const Common& common_;
  std::uintptr_t location_, pc_;
  FrameRule now_, initial_, remembered_[4];
  unsigned depth_ = 0;
  bool past_ = false, known_ = true;
};

// A handler returns to code that asks the kernel to go back to what was interrupted.
bool is_signal_return(std::uintptr_t pc) noexcept {
  constexpr unsigned char code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};  // mov $rt_sigreturn, %rax; syscall
  // Also for the byte before: who asks takes it for the end of a call.
  return std::memcmp(pointer_to(pc), code, sizeof code) == 0 || std::memcmp(pointer_to(pc + 1), code, sizeof code) == 0;
}

FrameRule rule_of_entry(const std::uint8_t* at, std::uintptr_t pc) noexcept {
  Reader r = entry_at(at);
  const std::uint8_t* const here = r.at();
  const auto back = r.take<std::uint32_t>();
  if (back == 0) return {};
  const Common common = read_common(here - back);
  if (!common.sound) return {};
  if (common.of_signal) {
    if (!is_signal_return(pc)) return {};
    FrameRule of_signal;
    of_signal.cfa = FrameRule::Cfa::of_signal;
    return of_signal;
  }
  const std::uintptr_t from = address_of(r.at());
  const std::uintptr_t begin = from + static_cast<std::uintptr_t>(std::int64_t{r.take<std::int32_t>()});
  const std::uintptr_t length = r.take<std::uint32_t>();
  if (pc - begin >= length) return outermost;  // code without a table
  r.skip(r.uleb());
  Row row(common, begin, pc);
  row.run(common.program, true);
  row.run(r, false);
  return r.sound() ? row.rule() : FrameRule{};
}

bool is_usual(const std::uint8_t* header) noexcept {
  constexpr std::uint8_t version = 1, four_bytes = 0x03;
  return header[0] == version && header[1] == pc_relative_4 && header[2] == four_bytes && header[3] == table_relative_4;
}

// Of a sorted table of functions, the last one that begins at pc or before.
const std::uint8_t* entry_for(const std::uint8_t* header, std::uintptr_t pc) noexcept {
  struct Function {
    std::int32_t begin, entry;  // from the header on
  };
  std::uint32_t count = 0;
  std::memcpy(&count, header + 8, sizeof count);
  const auto* const functions = reinterpret_cast<const Function*>(header + 12);
  const auto wanted = static_cast<std::int64_t>(pc - address_of(header));
  std::uint32_t low = 0, high = count;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (functions[middle].begin <= wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? nullptr : header + functions[low - 1].entry;
}

}  // namespace

bool has_frame_rules() noexcept { return _dl_find_object != nullptr; }

FrameRule find_frame_rule(std::uintptr_t pc) noexcept {
  Found found;
  if (_dl_find_object(pointer_to(pc), reinterpret_cast<dl_find_object*>(&found)) != 0) return outermost;
  const auto* const header = static_cast<const std::uint8_t*>(found.eh_frame_header);
  if (header == nullptr) return outermost;
  if (!is_usual(header)) return {};
  const std::uint8_t* const entry = entry_for(header, pc);
  return entry == nullptr ? outermost : rule_of_entry(entry, pc);
}

#else

bool has_frame_rules() noexcept { return false; }
FrameRule find_frame_rule(std::uintptr_t /*pc*/) noexcept { return {}; }

#endif

}  // namespace terrace::os
